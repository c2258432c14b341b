"""A quick look at messages: whether a target takes them as they are, told in one pass without building them.

Most messages need nothing. Decoding them against a type that allows just what the target takes costs a few
microseconds, and says no to everything else; only then they are looked at one by one.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from adapters.message_facts import ALL, KNOWN_PARTS, REASONING_FIELDS, MessageFacts

_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NEVER: Any = Literal["\x00"] | UnsetType
"""The type of a member that may not be there: no text of a client is this one."""
_ANY: Any = bool | int | float | str | list[msgspec.Raw] | dict[str, msgspec.Raw] | UnsetType
"""The type of a member that may be anything but null."""
_OBJECT: Any = dict[str, msgspec.Raw] | UnsetType


class MessageCheck:
    """Whether messages can go to a target as they are, as far as that shows in each message by itself."""

    def __init__(self, facts: MessageFacts) -> None:
        self._text_roles = facts.text_roles - {ALL}
        self._read = msgspec.json.Decoder(list[_message_type(facts)]).decode  # type: ignore[misc] # built at run time

    def read(self, raw: msgspec.Raw) -> list[Any] | None:
        """The messages with ``role``, ``tool_calls`` and ``tool_call_id``, or None where something has to change."""
        try:
            read: list[Any] = self._read(raw)
        except msgspec.ValidationError:
            return None
        for one in read:
            calls = one.tool_calls
            if calls is not UNSET and not all(_is_object(call.function.arguments) for call in calls):
                return None
            content, role = one.content, one.role
            if role == "assistant":
                continue
            if content is None or content is UNSET or (role == "tool" and one.tool_call_id is UNSET):
                return None
        if self._text_roles and any(one.role in self._text_roles and isinstance(one.content, list) for one in read):
            return None
        return read


def _is_object(arguments: str) -> bool:
    try:
        _read_object(arguments)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _message_type(facts: MessageFacts) -> Any:
    text = Annotated[str, Meta(min_length=1)]
    identifier = Annotated[str, Meta(pattern=facts.id_pattern)] if facts.id_pattern else str
    function = _struct("CallFunction", [("name", str), ("arguments", text)], facts.nested)
    call_fields = [("id", identifier), ("type", Literal["function"]), ("function", function)]
    call = _struct("ToolCall", call_fields, facts.nested)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("role", Literal[tuple(sorted(facts.roles))] if facts.roles else str),
        ("content", _content_type(facts) | None | UnsetType, UNSET)
        if facts.null_content
        else ("content", _content_type(facts)),
        # The types named here are made at run time, which a type checker cannot follow.
        ("tool_calls", Annotated[list[call], Meta(min_length=1)] | UnsetType, UNSET),  # type: ignore[valid-type]
        ("tool_call_id", identifier | UnsetType, UNSET),
    ]
    told = dict.fromkeys(facts.reasoning_fields, str | UnsetType)
    told |= {name: _NEVER for name in REASONING_FIELDS - facts.reasoning_fields if facts.reasoning_known}
    told["name"] = str | UnsetType if facts.names else _NEVER
    told["function_call"] = _ANY if facts.functions else _NEVER
    if not facts.cache_control:
        told["cache_control"] = _NEVER
    for name in facts.fields - {"role", "content", "tool_calls", "tool_call_id"} - told.keys() if facts.nested else ():
        told[name] = _ANY
    if facts.nested:
        # A member whose type allows nothing need not be known: the unknown are refused already.
        told = {name: kind for name, kind in told.items() if kind is not _NEVER}
    return _struct("Message", [*fields, *((name, kind, UNSET) for name, kind in told.items())], facts.nested)


def _content_type(facts: MessageFacts) -> Any:
    if ALL in facts.text_roles:
        return str
    kinds: Any = Literal[tuple(sorted(facts.parts))] if facts.parts else str
    members: list[tuple[str, Any] | tuple[str, Any, Any]] = [("type", kinds), ("text", str | UnsetType, UNSET)]
    if facts.nested:
        members += [(name, _ANY, UNSET) for name in KNOWN_PARTS if name not in ("text", "image_url")]
    elif not facts.cache_control:
        members.append(("cache_control", _NEVER, UNSET))
    members.append(("image_url", _OBJECT, UNSET))
    part = _struct("Part", members, facts.nested)
    # Made at run time, as above.
    return str | Annotated[list[part], Meta(min_length=1)]  # type: ignore[valid-type]


def _struct(name: str, fields: list[Any], closed: bool) -> Any:
    return msgspec.defstruct(name, fields, forbid_unknown_fields=closed, gc=False)
