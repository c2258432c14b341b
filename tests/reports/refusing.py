"""What a strict server has to say against a request, one rule a function, and requests that run into it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tests.reports.field import USER, WEATHER, Json, Rule, call

DEVELOPER: Json = {"role": "developer", "content": "Be brief."}
SYSTEM: Json = {"role": "system", "content": "Be brief."}
SAID: Json = {"role": "assistant", "content": "Where?"}
PING: Json = {"type": "function", "function": {"name": "ping", "description": "Says that it is there."}}
STRICT: Json = {"type": "function", "function": {**WEATHER["function"], "strict": True}}
PART: Json = {"type": "text", "text": "Hello."}
CALLED: list[Json] = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [call("call_1")]},
    {"role": "tool", "tool_call_id": "call_1", "content": "4"},
]


def without(name: str, told: str) -> Rule:
    return lambda body: told if name in body else None


def at_most(limit: int, told: str) -> Rule:
    return lambda body: told if max(body.get("max_tokens", 0), body.get("max_completion_tokens", 0)) > limit else None


def no_message(test: Callable[[Json], bool], told: str) -> Rule:
    return lambda body: told if any(map(test, body["messages"])) else None


def no_tool(test: Callable[[Json], bool], told: str) -> Rule:
    return lambda body: told if any(test(tool["function"]) for tool in body.get("tools", ())) else None


def late_system(body: Json) -> str | None:
    late = any(message["role"] == "system" for message in body["messages"][1:])
    return "System message must be at the beginning." if late else None


def user_after_tool(body: Json) -> str | None:
    roles = [message["role"] for message in body["messages"]]
    after = ("tool", "user") in pairwise(roles)
    return "Unexpected role 'user' after role 'tool'" if after else None


def unanswered(body: Json) -> str | None:
    made = any(message.get("tool_calls") for message in body["messages"])
    lacking = made and not any(message["role"] == "tool" for message in body["messages"])
    words = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    )
    return words if lacking else None


def same_again(body: Json) -> str | None:
    roles = [message["role"] for message in body["messages"]]
    again = any(one == other for one, other in pairwise(roles))
    return "After the optional system message, conversation roles must alternate user and assistant" if again else None


def twice(message: Json) -> Json:
    return {**message, "content": f"{message['content']}\n\n{message['content']}"}


def long_id(message: Json) -> bool:
    return any(len(made["id"]) != 9 for made in message.get("tool_calls", ()))
