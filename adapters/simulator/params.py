"""Refuses the parameters, and the values of parameters, that a provider's file says are refused."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from adapters.simulator.facts import Body, has_effect, in_use, known_names, value_of
from adapters.simulator.refusal import Refusals, RefusedError
from adapters.simulator.served import Served
from adapters.spec import ParamSpec, ProviderSpec, Support
from adapters.types import Operation
from adapters.vocabulary import Form, Overflow, Patch

_OF_COMPLETIONS: Final = frozenset({"best_of", "echo", "logprobs", "max_tokens", "model", "prompt", "stream", "suffix"})
_NOT_OF_COMPLETIONS: Final = frozenset({
    "max_completion_tokens", "messages", "metadata", "modalities", "parallel_tool_calls", "prediction",
    "reasoning_effort", "response_format", "store", "tool_choice", "tools", "top_logprobs", "verbosity",
    "web_search_options",
})  # fmt: skip
_OF_EMBEDDINGS: Final = frozenset({"dimensions", "encoding_format", "input", "model", "user"})
_BY_VALUE: Final = ("reasoning_effort", "service_tier", "tool_choice")
"""Parameters of a few words each, where a word that is not listed is refused."""


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types) and not (isinstance(value, bool) and bool not in types)


def _is_stop(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


_ANYTHING: Final = ("anything", lambda value: True)
_COUNT: Final = ("an integer", _is(int))
_FLAG_OR_COUNT: Final = ("a boolean or an integer", _is(bool, int))
_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "frequency_penalty": ("a number", _is(int, float)),
    "logit_bias": ("an object", _is(dict, list)),
    "logprobs": ("a boolean", _is(bool)),
    "max_completion_tokens": ("an integer", _is(int)),
    "max_tokens": ("an integer", _is(int)),
    "metadata": ("an object", _is(dict)),
    "n": ("an integer", _is(int)),
    "parallel_tool_calls": ("a boolean", _is(bool)),
    "presence_penalty": ("a number", _is(int, float)),
    "prompt_cache_key": ("a string", _is(str)),
    "reasoning_effort": ("a string", _is(str, bool, int, float)),
    "response_format": ("an object", _is(dict)),
    "seed": ("an integer", _is(int)),
    "service_tier": ("a string", _is(str)),
    "stop": ("a string or an array of strings", _is_stop),
    "store": ("a boolean", _is(bool)),
    "stream": ("a boolean", _is(bool)),
    "stream_options": ("an object", _is(dict)),
    "temperature": ("a number", _is(int, float)),
    "tool_choice": ("a string or an object", _is(str, dict)),
    "tools": ("an array", _is(list)),
    "top_logprobs": ("an integer", _is(int)),
    "top_p": ("a number", _is(int, float)),
    "user": ("a string", _is(str)),
}


class ParamRules:
    """What one provider takes of parameters, for each operation."""

    def __init__(self, spec: ProviderSpec, refusals: Refusals) -> None:
        self._spec = spec
        self._refusals = refusals
        self._strict = spec.transport.unknown_body_fields.only_known
        chat = known_names(spec)
        embeddings = spec.endpoints.get(Operation.EMBEDDINGS)
        self._known = {
            Operation.CHAT: chat,
            Operation.COMPLETIONS: (chat - _NOT_OF_COMPLETIONS) | _OF_COMPLETIONS,
            Operation.EMBEDDINGS: _OF_EMBEDDINGS.difference(embeddings.lacks if embeddings is not None else ()),
        }

    def check(self, body: Body, operation: Operation, served: Served) -> None:
        """Raise the `RefusedError` of the first name or value that is not taken."""
        if self._strict:
            for name, value in body.items():
                if name not in self._known[operation]:
                    raise self._unknown(name, value, self._spec.params.get(name))
        if operation is Operation.EMBEDDINGS:
            return
        for name in [name for name in body if name in _TYPES]:
            expected, fits = self._type_of(name, operation)
            if body[name] is not None and not fits(body[name]):
                raise self._refusals.invalid(f"'{name}' : value must be {expected}", name)
        for name, rule in self._spec.params.items():
            value = value_of(body, name)
            if in_use(name, value) and self._applies(name, rule, operation):
                self._check_use(name, rule, value, body, served)
        self._check_limit(body, served)

    def _applies(self, name: str, rule: ParamSpec, operation: Operation) -> bool:
        if operation is Operation.CHAT:
            return True
        if name == "logprobs":
            return rule.support is Support.REJECTED  # else it is a count there, whatever it is in chat
        return name.partition(".")[0] not in _NOT_OF_COMPLETIONS

    def _type_of(self, name: str, operation: Operation) -> tuple[str, Callable[[Any], bool]]:
        """What a value has to be, in words and as a test."""
        rule = self._spec.params.get(name)
        if rule is not None and not has_effect(rule, name):
            return _ANYTHING
        if name == "logprobs":
            if operation is Operation.COMPLETIONS:
                return _COUNT
            if rule is not None and rule.support is Support.LIMITED:
                return _FLAG_OR_COUNT
            if rule is not None and rule.form is Form.COUNT:
                return _ANYTHING  # its form is looked at in its turn
        return _TYPES[name]

    def _check_use(self, name: str, rule: ParamSpec, value: Any, body: Body, served: Served) -> None:
        if self._is_refused(name, rule):
            raise self._unknown(name, value, rule)
        if served.spec is not None and name in served.spec.lacks:
            if self._strict:
                raise self._unknown(name, value, rule)
            return
        if not has_effect(rule, name):
            return
        if rule.models and not rule.held_by(served.canonical):
            raise self._bad(name, rule, f"This model does not support '{name}'")
        if rule.requires is not None and not in_use(rule.requires, value_of(body, rule.requires)):
            raise self._bad(name, rule, f"'{name}' needs '{rule.requires}'")
        self._check_form(name, rule, value)
        self._check_bounds(name, rule, value)
        if name in _BY_VALUE:
            self._check_word(name, rule, value, served)

    def _is_refused(self, name: str, rule: ParamSpec) -> bool:
        match rule.support:
            case Support.REJECTED | Support.UNKNOWN:
                return True
            case Support.ABSENT:
                # A word that is missing from a list of words is noticed where a missing field may not be.
                return self._strict or name.startswith("response_format.")
            case Support.CONDITIONAL:
                # Left out although it may be there: then it may as well not be.
                bounded = rule.values or rule.by_model or rule.models or rule.requires
                return rule.status is not None and rule.patch in (Patch.STRIP, Patch.ERROR) and not bounded
            case _:
                return False

    def _check_form(self, name: str, rule: ParamSpec, value: Any) -> None:
        number = isinstance(value, int) and not isinstance(value, bool)
        match rule.form:
            case Form.ARRAY if not isinstance(value, list):
                raise self._bad(name, rule, f"Input validation error: {name}: expected a sequence")
            case Form.COUNT if not number:
                raise self._bad(name, rule, f"Input validation error: {name}: expected an integer")
            case Form.UNSIGNED if not number or value < 0:
                raise self._bad(name, rule, f"Input validation error: {name}: expected an unsigned integer")

    def _check_bounds(self, name: str, rule: ParamSpec, value: Any) -> None:
        if isinstance(value, list):
            most = rule.max if name == "tools" else rule.max_items
            if most is not None and len(value) > most:
                raise self._bad(name, rule, f"'{name}' : maximum number of items is {most:g}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return
        if value in rule.omit:
            raise self._bad(name, rule, f"'{name}' : {value} is not allowed")
        for bound, words, fits in (
            (rule.min, "at least", operator.ge),
            (rule.min_exclusive, "over", operator.gt),
            (rule.max, "at most", operator.le),
            (rule.max_exclusive, "below", operator.lt),
        ):
            if bound is not None and not fits(value, bound):
                raise self._bad(name, rule, f"'{name}' : number must be {words} {bound:g}")

    def _check_word(self, name: str, rule: ParamSpec, value: Any, served: Served) -> None:
        word = "named" if isinstance(value, Mapping) else value
        values = rule.values_for(served.canonical)
        if not isinstance(word, str) or not values or word in values:
            return
        if rule.status is None and not self._strict:
            return  # taken for no choice at all, see `asked.py`
        expected = ", ".join(f"'{one}'" for one in values)
        words = f"Unsupported {name}: {json.dumps(value)[:60]}. Expected one of {expected}"
        raise self._bad(name, rule, words)

    def _check_limit(self, body: Body, served: Served) -> None:
        """More tokens asked for than the model may write."""
        most = served.max_output_tokens if self._spec.context.overflow is not Overflow.LOWERS_LIMIT else None
        for name in ("max_tokens", "max_completion_tokens"):
            value = body.get(name)
            if value is None or not has_effect(self._spec.params.get(name), name):
                continue
            if value < 1:
                raise self._refusals.invalid(f"'{name}' : number must be at least 1", name)
            if most is not None and value > most:
                raise self._refusals.invalid(f"`{name}` must be less than or equal to `{most}`", name)

    def _bad(self, name: str, rule: ParamSpec, words: str) -> RefusedError:
        return self._refusals.invalid(rule.message_like or words, name, status=rule.status)

    def _unknown(self, name: str, value: Any, rule: ParamSpec | None) -> RefusedError:
        words, status = (rule.message_like, rule.status) if rule is not None else (None, None)
        return self._refusals.unknown_field(name, value, status=status, message_like=words)
