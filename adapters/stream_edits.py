"""Events of a stream made out of others: with another model, without usage, or with the usage of several choices."""

from __future__ import annotations

from typing import Any

import msgspec

from adapters.stream import StreamEvent
from adapters.usage import read_usage


def without_usage(event: StreamEvent) -> StreamEvent:
    """The event with its ``usage`` taken out, for providers that put it on a chunk with choices."""
    fields = msgspec.json.decode(event.data, type=dict[str, msgspec.Raw])
    fields.pop("usage", None)
    return _rebuilt(event, fields)


def add_usage(earlier: StreamEvent, event: StreamEvent) -> StreamEvent:
    """*event*, a choice's usage, as the usage of all choices so far."""
    fields = msgspec.json.decode(event.data, type=dict[str, msgspec.Raw])
    before = msgspec.json.decode(earlier.data, type=dict[str, msgspec.Raw])
    usage = sum_of_choices(msgspec.json.decode(before["usage"]), msgspec.json.decode(fields["usage"]))
    fields["usage"] = msgspec.Raw(msgspec.json.encode(usage))
    return msgspec.structs.replace(_rebuilt(event, fields), usage=read_usage(fields["usage"]))


def sum_of_choices(usage: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    """The ``usage`` of several choices: their common prompt counts once, what was generated adds up."""
    generated = (usage.get("completion_tokens") or 0) + (further.get("completion_tokens") or 0)
    return usage | {"completion_tokens": generated, "total_tokens": (usage.get("prompt_tokens") or 0) + generated}


def with_model(event: StreamEvent, model: bytes) -> StreamEvent:
    """The event with another ``model``; *model* is JSON."""
    fields = msgspec.json.decode(event.data, type=dict[str, msgspec.Raw])
    if "model" not in fields:
        return event
    fields["model"] = msgspec.Raw(model)
    return _rebuilt(event, fields)


def usage_event(like: StreamEvent) -> StreamEvent:
    """A usage chunk of its own, with ``choices: []`` (decision 38), made from an event that carries usage."""
    fields = msgspec.json.decode(like.data, type=dict[str, msgspec.Raw])
    fields["choices"] = msgspec.Raw(b"[]")
    if like.usage is not None and b'"total_tokens"' not in bytes(fields["usage"]):
        usage: dict[str, Any] = msgspec.json.decode(fields["usage"])
        usage["total_tokens"] = like.usage.prompt_tokens + like.usage.completion_tokens
        fields["usage"] = msgspec.Raw(msgspec.json.encode(usage))
    return _rebuilt(like, fields)


def _rebuilt(event: StreamEvent, fields: dict[str, msgspec.Raw]) -> StreamEvent:
    data = msgspec.json.encode(fields)
    return msgspec.structs.replace(event, data=data, raw=b"data: " + data + b"\n\n")
