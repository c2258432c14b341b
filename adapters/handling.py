"""What becomes of each parameter at a provider, found by preparing a request that uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from adapters.adapter import Adapter
from adapters.errors import ProviderError
from adapters.spec import ParamSpec, ProviderSpec, Support
from adapters.target import Target
from adapters.types import Action, Operation

_encode = msgspec.json.Encoder().encode


class Handling(StrEnum):
    """What a client that uses a parameter gets."""

    NATIVE = "native"  # it goes as it is
    PATCHED = "patched"  # what it asks for, by another name, value or way
    DROPPED = "dropped"  # an answer without it, and a word about that
    REFUSED = "refused"  # 400 unsupported_parameter, unless another target has it
    IGNORED = "ignored"  # it goes as it is and changes nothing there
    BY_MODEL = "by model"  # as the provider's model has it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of one parameter."""

    handling: Handling
    actions: tuple[Action, ...] = ()
    """What is reported to the client, in the words of ``x-gateway-adjusted``."""


_TOOL: Final = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
}
_SCHEMA: Final = {
    "name": "s",
    "schema": {
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False,
    },
}  # fmt: skip
_USES: Final[Mapping[str, Mapping[str, Any]]] = {
    "frequency_penalty": {"frequency_penalty": 0.5},
    "logit_bias": {"logit_bias": {"5": 1}},
    "logprobs": {"logprobs": True},
    "max_completion_tokens": {"max_completion_tokens": 64},
    "max_tokens": {"max_tokens": 64},
    "metadata": {"metadata": {"a": "b"}},
    "modalities": {"modalities": ["text", "audio"]},
    "n": {"n": 2},
    "parallel_tool_calls": {"tools": [_TOOL], "parallel_tool_calls": False},
    "prediction": {"prediction": {"type": "content", "content": "a"}},
    "presence_penalty": {"presence_penalty": 0.5},
    "prompt_cache_key": {"prompt_cache_key": "k"},
    "reasoning_effort": {"reasoning_effort": "low"},
    "response_format.json_object": {"response_format": {"type": "json_object"}},
    "response_format.json_schema": {"response_format": {"type": "json_schema", "json_schema": _SCHEMA}},
    "response_format.text": {"response_format": {"type": "text"}},
    "safety_identifier": {"safety_identifier": "s"},
    "seed": {"seed": 1},
    "service_tier": {"service_tier": "flex"},
    "stop": {"stop": ["a"]},
    "store": {"store": True},
    "stream": {"stream": True},
    "temperature": {"temperature": 0.5},
    "tool_choice": {
        "tools": [_TOOL, {"type": "function", "function": {"name": "g"}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
    },
    "tools": {"tools": [_TOOL]},
    "top_logprobs": {"logprobs": True, "top_logprobs": 2},
    "top_p": {"top_p": 0.5},
    "user": {"user": "u"},
    "verbosity": {"verbosity": "low"},
    "web_search_options": {"web_search_options": {"search_context_size": "low"}},
}
"""For each of OpenAI's parameters what a request holds that means it. Usage in streams is asked for in any case."""


def outcomes(spec: ProviderSpec) -> dict[str, Outcome]:
    """What becomes of each parameter that *spec* has an entry for, at a model the file does not list."""
    found = outcomes_at(Adapter(Target(spec.id, spec.id, "model", spec)))
    by_model = {
        name: Outcome(Handling.BY_MODEL) for name, facts in spec.params.items() if facts.models or facts.by_model
    }
    return {**found, **by_model}


def outcomes_at(adapter: Adapter) -> dict[str, Outcome]:
    """What becomes of each parameter that the facts of the adapter's target have an entry for."""
    return {name: _outcome(adapter, name, facts) for name, facts in sorted(adapter.target.spec.params.items())}


def _outcome(adapter: Adapter, name: str, facts: ParamSpec) -> Outcome:
    target = adapter.target
    held = facts.held_by(target.spec.canonical(target.model))
    if name == "stream_options.include_usage":
        told = held or target.spec.streaming.usage_unasked
        return Outcome(Handling.NATIVE if told else Handling.IGNORED)
    if name not in _USES:
        return Outcome(Handling.NATIVE if held else Handling.REFUSED)
    message = {"role": "user", "content": "hi"}
    request = {"model": _name(target), "messages": [message], **_USES[name]}
    body = {key: msgspec.Raw(_encode(value)) for key, value in request.items()}
    try:
        prepared = adapter.prepare(body, Operation.CHAT, "stream" in request)
    except ProviderError:
        return Outcome(Handling.REFUSED)
    head = name.partition(".")[0]
    actions = tuple(dict.fromkeys(change.action for change in prepared.adjustments if change.param == head))
    if not actions and prepared.shape is not None and not held:
        actions = (prepared.shape.action,)  # what is done about another parameter sees to this one too
    if not actions:
        return Outcome(Handling.IGNORED if facts.support is Support.IGNORED else Handling.NATIVE)
    return Outcome(Handling.DROPPED if actions == (Action.DROPPED,) else Handling.PATCHED, actions)


def _name(target: Target) -> str:
    """A name that clients may ask *target* by."""
    tunes = target.fine_tunes
    return tunes.pattern.removesuffix("*") + next(iter(tunes.known), "one") if tunes is not None else target.name
