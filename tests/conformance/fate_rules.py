"""What a provider file lets expect of a parameter by itself: a rule for most, and one each for those that differ."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from adapters.patches import ADVISORY, CONTRACT
from adapters.spec import ParamSpec, ProviderSpec, Support
from adapters.vocabulary import Form, Patch
from tests.conformance.uses import Use


class Fate(Enum):
    """What becomes of a parameter."""

    NATIVE = auto()
    """It arrives as it was sent, and has its effect."""
    PATCHED = auto()
    """It has its effect in another way, which is reported."""
    DROPPED = auto()
    """It does not arrive, which is reported."""
    REFUSED = auto()
    """Nothing is sent; 400 unsupported_parameter."""
    IGNORED = auto()
    """It arrives, and the provider does nothing with it."""


HONOURED = frozenset((Fate.NATIVE, Fate.PATCHED))
ANY_BUT_REFUSED = frozenset((Fate.NATIVE, Fate.PATCHED, Fate.DROPPED, Fate.IGNORED))
_LACKING = (Support.REJECTED, Support.ABSENT, Support.UNKNOWN)


class File:
    """What a provider's file says of one model of its own."""

    def __init__(self, spec: ProviderSpec, canonical: str, offers: bool | None) -> None:
        self.spec = spec
        self.canonical = canonical
        self.offers = offers
        self.strict = spec.transport.unknown_body_fields.only_known

    def lacks(self, facts: ParamSpec) -> bool:
        if facts.support is Support.CONDITIONAL and not facts.models:
            return facts.patch in (Patch.STRIP, Patch.ERROR)
        return facts.support in _LACKING or (not facts.held_by(self.canonical) and facts.support is Support.CONDITIONAL)

    def lacking(self, name: str, facts: ParamSpec) -> frozenset[Fate]:
        if facts.patch is Patch.FOLD_INTO_USER:
            user = self.spec.params.get("user")
            if user is None or not (self.lacks(user) or user.support is Support.IGNORED):
                return frozenset((Fate.PATCHED,))
        refused = facts.patch is Patch.ERROR or name.partition(".")[0] in CONTRACT
        return frozenset((Fate.REFUSED if refused else Fate.DROPPED,))

    def of(self, name: str, facts: ParamSpec) -> frozenset[Fate]:
        """The rule for parameters that nothing special is said of."""
        if self.lacks(facts):
            return self.lacking(name, facts)
        if facts.support is Support.IGNORED:
            told = facts.patch is not None or name not in ADVISORY or self.strict
            return self.lacking(name, facts) if told else frozenset((Fate.IGNORED,))
        if facts.support is Support.RENAMED:
            return frozenset((Fate.PATCHED,))
        return frozenset((Fate.NATIVE,))

    def one_of(self, name: str) -> ParamSpec | None:
        return self.spec.params.get(name)


def _words(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    """Parameters whose values are words, or numbers within bounds: they may be said otherwise, or left out."""
    found = read.of(use.param, facts)
    word = use.members[use.head]
    words = facts.values_for(read.canonical)
    if isinstance(word, str) and (words or facts.map) and found & HONOURED:
        if facts.map.get(word, word) != word:
            return frozenset((Fate.PATCHED,))
        return frozenset((Fate.NATIVE if not words or word in words else Fate.DROPPED,))
    changes = facts.values or facts.by_model or facts.map or facts.omit or facts.min or facts.max or facts.form
    changes = changes or facts.min_exclusive is not None or facts.max_exclusive is not None
    return found | {Fate.NATIVE, Fate.PATCHED, Fate.DROPPED} if changes and found & HONOURED else found


def _limit(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    return HONOURED


def _n(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    if use.name == "what means off":
        return HONOURED
    wanted = use.members["n"]
    most = (facts.max or 1) if facts.support is Support.LIMITED else 1 if facts.patch is Patch.FAN_OUT else None
    if not read.lacks(facts) and facts.support is not Support.IGNORED and (most is None or most >= wanted):
        form = read.one_of("response_format.json_schema") if "response_format" in use.members else None
        checked = form is not None and form.patch in (Patch.VALIDATE_SCHEMA, Patch.EMULATE_SCHEMA)
        if checked and form is not None and "tools" not in use.members:
            sure = form.patch is Patch.EMULATE_SCHEMA and (form.models or form.support is Support.NATIVE)
            return HONOURED if sure and form.held_by(read.canonical) else frozenset((Fate.PATCHED,))
        tools = read.one_of("tools") if "tools" in use.members else None
        if tools is not None and tools.patch is Patch.EMULATE_TOOLS and read.lacks(tools):
            return frozenset((Fate.PATCHED,))
        # What takes a call of its own, as a stream may, is done for each choice.
        stream = read.one_of("stream")
        plain = len(use.members) == 1 and stream is not None and stream.support is Support.NATIVE
        return frozenset((Fate.NATIVE,)) if plain and not read.spec.conflicts else HONOURED
    if facts.patch is not Patch.FAN_OUT:
        return frozenset((Fate.REFUSED,))
    return frozenset((Fate.PATCHED,)) | (tools_refused(read) if "tools" in use.members else frozenset())


def _stop(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    if read.lacks(facts) or facts.support is Support.IGNORED:
        return frozenset((Fate.PATCHED,))
    watched = facts.max_items or facts.form or facts.patch is Patch.CLIENT_SIDE_STOP
    return HONOURED if watched else frozenset((Fate.NATIVE,))


def _logprobs(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    flag, number = read.one_of("logprobs"), read.one_of("top_logprobs")
    asked = use.members.get("logprobs")
    if asked == 0 and asked is not False:
        return HONOURED
    if flag is not None and (read.lacks(flag) or flag.support is Support.IGNORED):
        return frozenset((Fate.REFUSED,))
    by_number = isinstance(asked, int) and not isinstance(asked, bool)
    if (
        by_number
        and flag is not None
        and flag.form is not Form.COUNT
        and not (number and (read.lacks(number) or number.support is Support.IGNORED))
    ):
        return frozenset((Fate.PATCHED,))
    if (use.head == "top_logprobs" or by_number) and number is not None and number.form is None and flag is not None:
        if flag.form is not Form.COUNT and (read.lacks(number) or number.support is Support.IGNORED):
            return frozenset((Fate.REFUSED,))
        return HONOURED
    return HONOURED


def _format(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    if use.param == "response_format.text":
        return HONOURED
    if facts.patch in (Patch.EMULATE_SCHEMA, Patch.VALIDATE_SCHEMA, Patch.REWRITE_SCHEMA):
        return HONOURED
    if any(conflict.patch is Patch.EMULATE_SCHEMA for conflict in read.spec.conflicts):
        return HONOURED
    if read.lacks(facts) or facts.support is Support.IGNORED:
        return frozenset((Fate.REFUSED,))
    return HONOURED if facts.dialect is not None else frozenset((Fate.NATIVE,))


def tools_refused(read: File) -> frozenset[Fate]:
    tools = read.one_of("tools")
    if tools is None or tools.patch is Patch.EMULATE_TOOLS:
        return frozenset()
    if tools.support is Support.CONDITIONAL and not tools.models and read.offers is False:
        return frozenset((Fate.REFUSED,))
    return frozenset((Fate.REFUSED,)) if read.lacks(tools) or tools.support is Support.IGNORED else frozenset()


def _tools(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    refused = tools_refused(read) if use.members["tools"] else None
    if refused:
        return refused
    if not use.members["tools"]:
        return HONOURED
    if facts.max is not None and len(use.members["tools"]) > facts.max:
        return frozenset((Fate.REFUSED,))
    beside = use.members.get("response_format", {}).get("type")
    form = read.one_of(f"response_format.{beside}") if beside else None
    if form is not None:
        found = _format(read, form, Use("", f"response_format.{beside}", use.members))
        return found if Fate.REFUSED in found else HONOURED
    changed = (Patch.EMULATE_TOOLS, Patch.CLEAN_TOOLS, Patch.DROP_EMPTY_LIST)
    if facts.patch in changed or read.spec.transport.unknown_body_fields.nested:
        return HONOURED
    return frozenset((Fate.NATIVE,))


def _choice(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    refused = tools_refused(read)
    choice = use.members["tool_choice"]
    if choice in ("none", "auto"):
        return HONOURED
    if refused:
        return refused
    tools = read.one_of("tools")
    if tools is not None and tools.patch is Patch.EMULATE_TOOLS and not tools.held_by(read.canonical):
        return HONOURED
    if facts.patch is Patch.EMULATE_FORCED_TOOL:
        return HONOURED
    words = () if read.lacks(facts) or facts.support is Support.IGNORED else facts.values_for(read.canonical)
    word = "named" if isinstance(choice, Mapping) and choice["type"] == "function" else choice
    if isinstance(choice, Mapping) and choice["type"] == "allowed_tools":
        word = "required"
    if word == "named" and facts.patch is Patch.REQUIRE_NAMED_TOOL and "required" in words:
        return HONOURED
    if word in words or (not words and not read.lacks(facts) and facts.support is not Support.IGNORED):
        return HONOURED
    return frozenset((Fate.REFUSED,))


def _parallel(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    return (tools_refused(read) if "tools" in use.members else None) or HONOURED


def _modalities(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    # What an answer is to sound like has a parameter of its own.
    found = read.of(use.param, facts)
    return found | {Fate.REFUSED} if read.strict and "audio" not in read.spec.extra_params else found


def _effort(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    word = use.members["reasoning_effort"]
    off = read.spec.reasoning.switch_for(read.canonical).keys() - {"reasoning_effort"}
    if read.lacks(facts) or facts.support is Support.IGNORED:
        return frozenset((Fate.PATCHED,)) if word == "none" and off else read.lacking(use.param, facts)
    words = facts.values_for(read.canonical)
    if not words or word in words:
        return frozenset((Fate.NATIVE,))
    return frozenset((Fate.PATCHED, Fate.DROPPED))


def _search(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    if facts.tool and (not facts.models or facts.held_by(read.canonical) or any(
        read.canonical.startswith(one) for one in facts.models
    )):  # fmt: skip
        return frozenset((Fate.PATCHED,))
    return read.of(use.param, facts) if facts.support is not Support.RENAMED else frozenset((Fate.REFUSED,))


def _usage(read: File, facts: ParamSpec, use: Use) -> frozenset[Fate]:
    streaming = read.spec.streaming
    told = streaming.usage_unasked or facts.support in (Support.NATIVE, Support.CONDITIONAL, Support.LIMITED)
    return HONOURED if told else ANY_BUT_REFUSED


SPECIAL: Mapping[str, Any] = {
    "n": _n,
    "stop": _stop,
    "max_tokens": _limit,
    "max_completion_tokens": _limit,
    "logprobs": _logprobs,
    "top_logprobs": _logprobs,
    "response_format": _format,
    "tools": _tools,
    "tool_choice": _choice,
    "parallel_tool_calls": _parallel,
    "reasoning_effort": _effort,
    "modalities": _modalities,
    "frequency_penalty": _words,
    "presence_penalty": _words,
    "service_tier": _words,
    "temperature": _words,
    "top_p": _words,
    "seed": _words,
    "verbosity": _words,
    "web_search_options": _search,
    "stream_options": _usage,
}
"""The rules of parameters that differ, by the first word of their name."""
