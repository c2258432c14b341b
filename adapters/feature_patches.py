"""Compiles what a provider file says of tools, forms of an answer and log probabilities into patches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapters.format_patches import ResponseFormat
from adapters.logprob_patches import AsCount, AsFlag, WantShape, alternatives_within
from adapters.parameter_patches import Omit
from adapters.patches import Patch
from adapters.spec import ParamSpec, Support
from adapters.target_facts import TargetFacts
from adapters.tool_choice import CallDue, OneCall, ToolChoice
from adapters.tool_patches import FUNCTION_MEMBERS, CleanTools, FewerTools, NoTools, OrderlyTools, ToolsIfOffered
from adapters.vocabulary import EXTENSIONS, Form, MessageRule
from adapters.vocabulary import Patch as Word

_MOST_ALTERNATIVES: Final = 20
_USUAL_CHOICES: Final = ("none", "auto", "required", "named")
"""OpenAI's list of allowed tools is not among them: few know it, and the tools it names do as well."""


def logprob_patches(target: TargetFacts) -> Iterator[tuple[str, Patch]]:
    """Each patch for log probabilities, with its parameter."""
    flag, number = target.spec.params.get("logprobs"), target.spec.params.get("top_logprobs")
    if flag is not None and target.has_no(flag):
        yield "logprobs", Omit("logprobs", frozenset((0,)))
        yield "logprobs", target.without("logprobs", flag)
        yield "top_logprobs", target.without("top_logprobs", number or flag)
        return
    highest = next((facts.max for facts in (number, flag) if facts is not None and facts.max is not None), None)
    most = int(highest) if highest is not None and highest < _MOST_ALTERNATIVES else None
    if flag is not None and flag.form is Form.COUNT:
        yield "logprobs", AsCount(most)
        yield "top_logprobs", AsCount(most)
        return
    lacking = target.without("top_logprobs", number) if number is not None and target.has_no(number) else None
    yield "logprobs", AsFlag(most, lacking)
    if number is not None and number.default is not None:
        yield "logprobs", WantShape()
    if lacking is not None:
        yield "top_logprobs", lacking
    elif most is not None:
        yield "top_logprobs", alternatives_within(target.provider, most)


def tool_patches(target: TargetFacts) -> Iterator[tuple[str, Patch]]:
    """Each patch for tools and how they may be called, with its parameter."""
    for name in ("tool_choice", "parallel_tool_calls"):
        yield name, OrderlyTools()
    tools = target.spec.params.get("tools")
    if tools is not None and target.has_no_tools():
        # With the tools goes all that is said about them.
        yield "tools", NoTools(target.provider, tools.hint or "")
        return
    yield "tools", OrderlyTools()
    if tools is not None:
        yield from (("tools", patch) for patch in _tool_list(target, tools))
    choice = target.spec.params.get("tool_choice")
    if choice is not None:
        words = choice.values_for(target.canonical)
        if target.has_no(choice):
            words = ()
        elif not words and choice.support in (Support.NATIVE, Support.CONDITIONAL):
            words = _USUAL_CHOICES
        require = choice.patch is Word.REQUIRE_NAMED_TOOL
        yield "tool_choice", ToolChoice(target.provider, words, require, choice.hint or "")
    if not _asks_freely(target, choice):
        yield "tool_choice", CallDue()
    parallel = target.spec.params.get("parallel_tool_calls")
    if parallel is not None and (target.has_no(parallel) or parallel.patch is Word.KEEP_FIRST_CALL):
        yield "parallel_tool_calls", OneCall()


def _asks_freely(target: TargetFacts, choice: ParamSpec | None) -> bool:
    """Whether no call is ever forced there, but emulated, which looks for it by itself."""
    if choice is None or choice.patch is not Word.EMULATE_FORCED_TOOL:
        return False
    words = () if target.has_no(choice) else choice.values_for(target.canonical)
    return target.has_no(choice) or (bool(words) and not {"required", "any", "named"} & set(words))


def _tool_list(target: TargetFacts, facts: ParamSpec) -> Iterator[Patch]:
    if target.offers is not None and target.is_offered(facts):
        yield ToolsIfOffered(target.provider, target.offers, facts.hint or "")
    if facts.max is not None:
        yield FewerTools(target.provider, int(facts.max))
    nested = target.spec.transport.unknown_body_fields.nested
    if facts.patch is Word.CLEAN_TOOLS:
        yield CleanTools(FUNCTION_MEMBERS - {"strict"}, inline_definitions=True)
    elif nested:
        alike = MessageRule.STRICT_ALIKE in target.spec.messages.rules
        yield CleanTools(frozenset(target.spec.messages.fields.function), strict_alike=alike)


def format_patches(target: TargetFacts) -> Iterator[tuple[str, Patch]]:
    """The patch for the form of an answer, with its parameter."""
    said = {
        name.partition(".")[2]: facts
        for name, facts in target.spec.params.items()
        if name.startswith("response_format.")
    }
    lacking = {kind: facts.hint or "" for kind, facts in said.items() if target.has_no(facts)}
    if target.spec.transport.unknown_body_fields.only_known:
        lacking |= {kind: "" for name in EXTENSIONS if (kind := name.partition(".")[2]) not in said}
    schema = said.get("json_schema")
    has_schema = schema is not None and "json_schema" not in lacking
    dialect = schema.dialect if schema is not None and has_schema else None
    as_schema = "json_object" in lacking and has_schema and said["json_object"].patch is Word.REWRITE_SCHEMA
    closed = target.spec.transport.unknown_body_fields.nested
    if lacking or dialect is not None or closed:
        yield "response_format", ResponseFormat(target.provider, lacking, dialect, as_schema, closed)
