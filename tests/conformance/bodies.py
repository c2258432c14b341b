"""What may stand in a request to a provider, and what has to, whoever asks: read off its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.allow_list import FOREIGN
from adapters.message_facts import REASONING_FIELDS
from adapters.patches import ADVISORY
from adapters.simulator.facts import in_use
from adapters.spec import ParamSpec, ProviderSpec, Support
from adapters.target import Target
from adapters.vocabulary import Patch
from tests.conformance.rehearsal import has_tools
from tests.conformance.uses import Use

_LACKING: Final = (Support.REJECTED, Support.ABSENT, Support.UNKNOWN)
_LIMITS: Final = ("max_tokens", "max_completion_tokens")


def check_body(target: Target, use: Use, body: Mapping[str, Any]) -> None:
    """Whether *body* holds what the file wants in any case, and nothing that is out of place."""
    spec = target.spec
    canonical = spec.canonical(target.model)
    wanted = {**spec.defaults, **spec.context.ask_for_error}
    assert all(body.get(name) == value for name, value in wanted.items() if name not in use.members), body
    limits = [name for name in _LIMITS if name in body]
    assert len(limits) < 2
    assert limits or not any(facts.patch is Patch.SEND_LIMIT for facts in spec.params.values())
    assert not limits or target.max_output_tokens is None or body[limits[0]] <= target.max_output_tokens
    assert body.get("tools") or not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()
    assert has_tools(target) is not False or "tools" not in body
    lacking = [name for name, value in body.items() if in_use(name, value) and _lacks(spec, name)]
    assert lacking == [], "parameters that the provider lacks"
    form = body.get("response_format")
    if form is not None and "response_format" in use.members:
        entry = spec.params.get(f"response_format.{use.members['response_format']['type']}")
        kept = entry is not None and (entry.held_by(canonical) or entry.support is Support.RENAMED)
        other = form["type"] != use.members["response_format"]["type"]
        assert entry is None or kept or other or _by_schema(entry), "a form that the provider lacks"
    if body.get("stream"):
        _check_stream(spec, body)
    choices = spec.params.get("n")
    if choices is not None and choices.max is not None:
        assert (body.get("n") or 1) <= choices.max
    replay = spec.messages.assistant_reasoning_in
    if replay is not None and "messages" in body:
        strange = REASONING_FIELDS - {replay.field, replay.alias}
        assert not any(strange & message.keys() for message in body["messages"])


def _check_stream(spec: ProviderSpec, body: Mapping[str, Any]) -> None:
    """Usage is asked for of everyone who tells it on being asked, and progress of those who know it."""
    facts = spec.params.get("stream_options.include_usage")
    if facts is None or facts.support in (Support.NATIVE, Support.CONDITIONAL, Support.LIMITED):
        assert body["stream_options"]["include_usage"] is True
    else:
        assert "stream_options" not in body
    assert spec.streaming.progress_param is None or body[spec.streaming.progress_param] is True


def _lacks(spec: ProviderSpec, name: str) -> bool:
    """Whether a parameter under its own name is of no use to the provider, and worth telling."""
    facts = spec.params.get(name)
    brought = {*spec.reasoning.off, *spec.defaults, *spec.context.ask_for_error}
    brought |= {one.to for one in spec.params.values() if one.to is not None}
    if name in brought:
        return False
    if facts is None:
        ignores = spec.transport.unknown_body_fields.support is Support.IGNORED
        own = {one.partition(".")[0].partition("(")[0] for one in spec.extra_params}
        return ignores and name in FOREIGN - own
    if facts.support is Support.IGNORED:
        strict = spec.transport.unknown_body_fields.only_known
        return facts.patch is not None or name not in ADVISORY or strict
    return facts.support in _LACKING


def _by_schema(entry: ParamSpec) -> bool:
    return entry.patch is Patch.REWRITE_SCHEMA
