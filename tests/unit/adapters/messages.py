"""Messages of a conversation, and what a target would be sent for them."""

from __future__ import annotations

from typing import Any

from tests.fakes.prepared import Sent, adapter_of, sent_by

Message = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def said(content: Any, role: str = "user", **more: Any) -> Message:
    return {"role": role, "content": content, **more}


def call(identifier: str = "call_1", arguments: Any = "{}", **more: Any) -> Message:
    return {"id": identifier, "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


def calling(*calls: Message, **more: Any) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(identifier: str = "call_1", content: Any = "4") -> Message:
    return {"role": "tool", "tool_call_id": identifier, "content": content}


def sent_to(provider: str, *messages: Message, model: str = "m", tools: Any = None, **overrides: Any) -> Sent:
    # With a limit, so that no target adds its own.
    members = {"max_tokens": 9} | ({"tools": tools} if tools is not None else {})
    return sent_by(adapter_of(provider, model, **overrides), messages=list(messages), **members)
