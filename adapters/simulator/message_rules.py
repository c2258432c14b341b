"""Refuses messages that a provider's file says are refused: roles, parts, fields, and the order they stand in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from adapters.simulator.facts import is_refused
from adapters.simulator.refusal import Refusals, RefusedError
from adapters.simulator.served import Served
from adapters.spec import Entry, PartSupport, ProviderSpec
from adapters.vocabulary import MessageRule

Message = Mapping[str, Any]


class MessageRules:
    """What one provider takes of messages."""

    def __init__(self, spec: ProviderSpec, refusals: Refusals) -> None:
        self._facts = spec.messages
        self._refusals = refusals
        self._nested = spec.transport.unknown_body_fields.nested
        self._image_in_bytes = spec.messages.content_parts.get("image_url") is PartSupport.BYTES
        replay = spec.messages.assistant_reasoning_in
        taken = (replay.field, replay.alias) if replay is not None else ()
        self._fields = frozenset((*spec.messages.fields.message, *(name for name in taken if name is not None)))
        self._rejected_field = replay.reject if replay is not None else None
        self._rules = [_RULES[word] for word in spec.messages.rules if word in _RULES]

    def check(self, messages: Any, served: Served) -> None:
        """Raise the `RefusedError` of the first thing that is not taken."""
        if not isinstance(messages, list) or not messages:
            raise self._refusals.invalid("'messages' : minimum number of items is 1", "messages")
        for number, message in enumerate(messages):
            at = f"messages[{number}]"
            if not isinstance(message, Mapping):
                raise self._refusals.invalid(f"'{at}' : value must be an object", at)
            self._check_role(at, message, served)
            self._check_fields(at, message, served)
            self._check_content(at, message, served)
            self._check_calls(at, message, served)
        self._check_system(messages, served)
        for rule in self._rules:
            for place, words in rule(messages):
                raise self._refusals.invalid(words, place)

    def _check_role(self, at: str, message: Message, served: Served) -> None:
        if self._facts.unchecked:
            return
        role = message.get("role")
        known = role in self._facts.roles or not self._facts.roles
        if role == "developer" and self._facts.developer_role is not None:
            known = not is_refused(self._facts.developer_role, served.canonical)
        if not isinstance(role, str) or not known:
            allowed = ", ".join(f"'{one}'" for one in self._facts.roles)
            raise self._refusals.invalid(f"'{at}.role' : {json.dumps(role)} is not one of {allowed}", f"{at}.role")

    def _check_fields(self, at: str, message: Message, served: Served) -> None:
        facts = self._facts
        for name, value in message.items():
            path = f"{at}.{name}"
            if name == self._rejected_field or (self._nested and name not in self._fields):
                raise self._refusals.unknown_field(path, value)
            entry = {"name": facts.name, "cache_control": facts.cache_control}.get(name)
            # A function's result names the function, whatever is said of speakers.
            named = name == "name" and message.get("role") == "function"
            if value is not None and is_refused(entry, served.canonical) and not named:
                raise self._refused(entry, path, value)
            if value is None and name != "content" and is_refused(facts.null_fields, served.canonical):
                raise self._refused(facts.null_fields, path, value)

    def _check_system(self, messages: list[Message], served: Served) -> None:
        later = [number for number, message in enumerate(messages) if number and message.get("role") == "system"]
        if later and self._facts.wants_single_system(served.canonical):
            raise self._refusals.invalid("System message must be at the beginning.", f"messages[{later[0]}]")
        middle = [number for number in later if messages[number - 1].get("role") not in ("system", "developer")]
        if middle and is_refused(self._facts.mid_conversation_system, served.canonical):
            words = "a system message may not stand in the middle of a conversation"
            raise self._refusals.invalid(words, f"messages[{middle[0]}]")

    def _refused(self, entry: Entry | None, path: str, value: Any) -> RefusedError:
        return self._refusals.unknown_field(path, value, status=entry.status if entry is not None else None)

    def _check_content(self, at: str, message: Message, served: Served) -> None:
        content, role = message.get("content"), str(message.get("role"))
        if content is None:
            if self._facts.unchecked:
                return
            if role != "assistant" or is_refused(self._facts.null_content, served.canonical):
                raise self._refusals.invalid(f"'{at}' : property 'content' is missing", f"{at}.content")
        elif isinstance(content, list):
            if self._facts.wants_string(role) and all(_is_text(part) for part in content):
                raise self._refusals.invalid(f"'{at}.content' : value must be a string", f"{at}.content")
            for number, part in enumerate(content):
                self._check_part(f"{at}.content[{number}]", part, served)
        elif not isinstance(content, str):
            raise self._refusals.invalid(f"'{at}.content' : value must be a string or an array", f"{at}.content")

    def _check_part(self, at: str, part: Any, served: Served) -> None:
        kind = part.get("type") if isinstance(part, Mapping) else None
        support = self._facts.content_parts.get(str(kind), PartSupport.ABSENT)
        blind = served.spec is not None and not served.spec.vision and support is PartSupport.CONDITIONAL
        if support is PartSupport.ABSENT or (blind and kind == "image_url"):
            raise self._refusals.invalid(
                f"'{at}.type' : {json.dumps(kind)} is not supported by this model", f"{at}.type"
            )
        if self._nested:
            self._only(at, part, frozenset(("type", str(kind))))
        if kind == "image_url" and self._image_in_bytes and not _is_inline(part):
            raise self._refusals.invalid(f"'{at}.image_url' : only base64 data URLs are taken", f"{at}.image_url")

    def _check_calls(self, at: str, message: Message, served: Served) -> None:
        calls = message.get("tool_calls")
        if calls == [] and is_refused(self._facts.empty_tool_calls, served.canonical):
            raise self._refusals.invalid(f"'{at}.tool_calls' : minimum number of items is 1", f"{at}.tool_calls")
        if message.get("role") == "tool" and not isinstance(message.get("tool_call_id"), str):
            raise self._refusals.invalid(f"'{at}' : property 'tool_call_id' is missing", f"{at}.tool_call_id")
        if calls is not None and not isinstance(calls, list):
            raise self._refusals.invalid(f"'{at}.tool_calls' : value must be an array", f"{at}.tool_calls")
        for number, call in enumerate(calls or ()):
            place = f"{at}.tool_calls[{number}]"
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
                raise self._refusals.invalid(f"'{place}' : property 'function' is missing or no object", place)
            if not isinstance(function.get("arguments"), str):
                raise self._refusals.invalid(f"'{place}.function.arguments' : value must be a string", place)
            if self._nested:
                self._only(place, call, frozenset(self._facts.fields.tool_call))
                self._only(f"{place}.function", function, frozenset(self._facts.fields.call_function))

    def _only(self, at: str, members: Mapping[str, Any], known: frozenset[str]) -> None:
        for name, value in members.items():
            if name not in known:
                raise self._refusals.unknown_field(f"{at}.{name}", value)


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _is_inline(part: Mapping[str, Any]) -> bool:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    return isinstance(url, str) and url.startswith("data:")


def _ids(message: Message) -> list[Any]:
    return [call.get("id") for call in message.get("tool_calls") or ()]


def _answered_at_once(messages: list[Message]) -> Iterator[tuple[str, str]]:
    waiting: list[Any] = []
    for number, message in enumerate(messages):
        if message.get("role") == "tool":
            waiting = [one for one in waiting if one != message.get("tool_call_id")]
        elif waiting:
            yield f"messages[{number}]", f"tool_calls must be followed by tool messages for each id; missing: {waiting}"
        waiting += _ids(message)
    if waiting:
        yield "messages", f"tool_calls must be followed by tool messages for each id; missing: {waiting}"


def _no_orphans(messages: list[Message]) -> Iterator[tuple[str, str]]:
    known: set[Any] = set()
    for number, message in enumerate(messages):
        if message.get("role") == "tool" and message.get("tool_call_id") not in known:
            yield f"messages[{number}]", "a tool message must answer a preceding tool call"
        known.update(_ids(message))


def _unique_ids(messages: list[Message]) -> Iterator[tuple[str, str]]:
    seen: set[Any] = set()
    for number, message in enumerate(messages):
        for one in _ids(message):
            if one in seen:
                yield f"messages[{number}]", f"tool call id {json.dumps(one)} is used twice"
            seen.add(one)


def _content_needed(messages: list[Message]) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(messages):
        # Null is content enough; it is the member that must not be missing.
        if message.get("role") == "assistant" and "content" not in message and not message.get("tool_calls"):
            yield f"messages[{number}]", "an assistant message must contain either 'content' or 'tool_calls'"


def _one_trailing_assistant(messages: list[Message]) -> Iterator[tuple[str, str]]:
    if [message.get("role") for message in messages[-2:]] == ["assistant", "assistant"]:
        yield "messages", "cannot have 2 or more assistant messages at the end of the list"


def _assistant_after_tool(messages: list[Message]) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(messages[1:], 1):
        if (messages[number - 1].get("role"), message.get("role")) == ("tool", "user"):
            yield f"messages[{number}]", "Unexpected role 'user' after role 'tool'"


def _alternating(messages: list[Message]) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(messages[1:], 1):
        if message.get("role") in ("user", "assistant") and message.get("role") == messages[number - 1].get("role"):
            yield f"messages[{number}]", "conversation roles must alternate user and assistant"


def _user_first(messages: list[Message]) -> Iterator[tuple[str, str]]:
    first = next((message.get("role") for message in messages if message.get("role") not in _INSTRUCTING), None)
    if first == "assistant":
        yield "messages", "conversation must start with a user message"


def _not_assistant_last(messages: list[Message]) -> Iterator[tuple[str, str]]:
    if messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls"):
        yield "messages", "conversation must end with a user message"


_INSTRUCTING: Final = ("system", "developer")
_RULES: Final[Mapping[MessageRule, Callable[[list[Message]], Iterator[tuple[str, str]]]]] = {
    MessageRule.ANSWERED_AT_ONCE: _answered_at_once,
    MessageRule.NO_ORPHANS: _no_orphans,
    MessageRule.UNIQUE_IDS: _unique_ids,
    MessageRule.NEEDS_CONTENT: _content_needed,
    MessageRule.ONE_TRAILING_ASSISTANT: _one_trailing_assistant,
    MessageRule.ASSISTANT_AFTER_TOOL: _assistant_after_tool,
    MessageRule.ALTERNATING: _alternating,
    MessageRule.USER_FIRST: _user_first,
    MessageRule.NOT_ASSISTANT_LAST: _not_assistant_last,
}
"""Whether a choice of tools needs tools is asked with the tools."""
