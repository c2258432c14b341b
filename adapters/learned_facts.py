"""Features that a target turns out to lack: the facts that make the gateway honour them by other means.

They are those that a provider file would state, so that the same patches and shapes see to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapters.draft import Draft, Unsupported
from adapters.learned_schemas import dialect_told, is_strict
from adapters.shapes.bodies import is_used, value_of, wanted_format
from adapters.spec_request import ParamSpec
from adapters.told import Told
from adapters.types import Operation
from adapters.vocabulary import FROM_CONFIG

_LACKING: Final = re.compile(
    r"unavailable|not available|must be|is not one of|only supports?|supported values|not compatible|incompatible"
    r"|can ?not be (?:used|combined)|at most|<=|less than|not implemented|expected|doesn'?t support"
    r"|should be|requires --"
)
_SCHEMA_IS_WRONG: Final = re.compile(r"invalid schema|schema for|invalid json ?schema")
_SCHEMA: Final = "response_format.json_schema"
_NO_TOOLS: Final = re.compile(
    r"(?:does not|doesn'?t) support (?:tools|tool|function)|tools? (?:is|are) not supported|tools param requires"
    r"|tool choice requires --enable|--enable-auto-tool-choice"
)
_STOPS: Final = re.compile(r"\bstop(?:[ _]sequences?|[ _]strings?|words)?\b")
_AT_MOST: Final = re.compile(r"(?:at most|up to|no more than|maximum(?: of)?|less than or equal to|<=)\D{0,20}?(\d+)")
_ALONE: Final = re.compile(r"(?<![\w.])n(?!\w)")


class Feature(NamedTuple):
    """What is known of a feature after its refusal."""

    param: str
    overrides: Mapping[str, Any] = {}
    conflicts: Sequence[Mapping[str, Any]] = ()


def feature_refused(draft: Draft, told: Told, known: Mapping[str, ParamSpec] | None = None) -> Feature | None:
    """The feature of *draft* that was refused, where it can be had by other means and the client may be given them.

    *known* is what is known of the target's parameters.
    """
    strict = draft.unsupported in (Unsupported.REJECT, Unsupported.DROP)
    if draft.operation is not Operation.CHAT or strict:
        return None
    if wanted_format(draft.body) == "json_schema" and (dialect := _dialect(draft, told, known or {})) is not None:
        return dialect
    if not (told.unsupported or _LACKING.search(told.text)):
        return None
    body, text = draft.body, told.text
    about_tools, about_format = "tool" in text or "function call" in text, _is_about_format(text)
    form = wanted_format(body)
    if form and about_format and not _SCHEMA_IS_WRONG.search(text):
        if is_used(body, "tools") and about_tools:
            return _together(["tools", "response_format"], "two_phase", "response_format")
        if draft.stream and "stream" in text:
            return _together(["stream", "response_format"], "fake_stream", "stream")
        if form in ("json_schema", "json_object"):
            return _lacks(f"response_format.{form}", "emulate_schema", param="response_format")
    if "n" in body and value_of(body, "n") != 1 and (told.named == "n" or _ALONE.search(text)):
        return _lacks("n", "fan_out", support="limited", max=1)
    if is_used(body, "stop") and (told.named == "stop" or _STOPS.search(text)):
        most = _AT_MOST.search(text)
        if most is not None and int(most.group(1)):
            return _lacks("stop", "client_side_stop", support="limited", max_items=int(most.group(1)))
        return _lacks("stop", "client_side_stop") if told.unsupported else None
    if not is_used(body, "tools"):
        return None
    if "parallel_tool_calls" in text and is_used(body, "parallel_tool_calls"):
        return _lacks("parallel_tool_calls", "keep_first_call")
    if "tool_choice" in text and is_used(body, "tool_choice"):
        return _lacks("tool_choice", "emulate_forced_tool", support="limited", values=["none", "auto"])
    if _NO_TOOLS.search(text):
        return _lacks("tools", "emulate_tools")
    return None


def _dialect(draft: Draft, told: Told, known: Mapping[str, ParamSpec]) -> Feature | None:
    if not (_is_about_format(told.text) or "schema" in told.text or told.named == "response_format"):
        return None
    wanted, facts = draft.body["response_format"], known.get(_SCHEMA)
    dialect = dialect_told(bytes(wanted), is_strict(wanted), facts.dialect if facts is not None else None, told)
    if dialect is None:
        return None
    native = {} if facts is not None else {"support": "native"}
    return Feature("response_format", {"params": {_SCHEMA: {**native, "dialect": dialect}}})


def _is_about_format(text: str) -> bool:
    return any(
        word in text for word in ("response_format", "json_schema", "json_object", "json mode", "structured out")
    )


def _lacks(name: str, patch: str, *, param: str | None = None, support: str = "rejected", **facts: Any) -> Feature:
    return Feature(param or name, {"params": {name: {"support": support, "patch": patch, **facts}}})


def _together(names: list[str], patch: str, param: str) -> Feature:
    return Feature(param, {}, [{"when": names, "result": 400, "patch": patch, "src": [FROM_CONFIG]}])
