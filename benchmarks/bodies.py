"""What the load asks for."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final

SECOND: Final = 1_000_000
"""In microseconds, as gaps between events are told."""

_SYSTEM: Final = "You answer briefly, precisely and in plain words."
_ASKED: Final = (
    "Tell me in one sentence why rivers bend. Name the soil, the current and the slope, and keep it under thirty "
    "words, without a list."
)
_PARAGRAPH: Final = 'A paragraph of a long talk, with "quotes", a line\nbreak, and letters such as é, ü and ž. '


class Body(StrEnum):
    """A request by what is in it."""

    SMALL = "small"
    """About 350 bytes."""
    LARGE = "large"
    """About 25 kB in twenty messages."""
    TOOLS = "tools"
    """Four tools, and an answer with a call."""
    STREAM = "stream"


def body(kind: Body, model: str, *, gap: int | None = None) -> bytes:
    """The JSON of a request for *model*; *gap* are the microseconds between the events of a stream."""
    asked: dict[str, Any] = {"model": model, "messages": _messages(kind), "temperature": 0.7, "max_tokens": 64}
    if kind is Body.TOOLS:
        asked |= {"tools": [_tool(name) for name in ("look_up", "add_note", "list_notes", "send")]}
    if kind is Body.STREAM:
        asked |= {"stream": True, "stream_options": {"include_usage": True}}
    if gap is not None:
        asked["seed"] = gap
    return json.dumps({**asked, "user": "user-1234"}, ensure_ascii=False).encode()


def _messages(kind: Body) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": _SYSTEM}]
    if kind is Body.LARGE:
        roles = ("user", "assistant") * 9
        messages += [{"role": role, "content": f"{number}. " + _PARAGRAPH * 14} for number, role in enumerate(roles)]
    return [*messages, {"role": "user", "content": _ASKED}]


def _tool(name: str) -> dict[str, Any]:
    properties = {
        "words": {"type": "string", "description": "what it is about"},
        "most": {"type": "integer", "minimum": 1, "maximum": 50},
        "order": {"type": "string", "enum": ["newest", "oldest", "best"]},
    }
    schema = {"type": "object", "properties": properties, "required": ["words"], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": f"Tool {name}.", "parameters": schema}}
