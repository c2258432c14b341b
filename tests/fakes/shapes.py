"""Providers that lack one thing or another, and what was asked of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.fakes.gateway import config
from tests.fakes.openai_answers import completion
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.fakes.scripted_server import answer as wire_answer

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look somewhere",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
            "additionalProperties": False,
        },
    },
}
WAIT = {"type": "function", "function": {"name": "wait"}}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
AS_PERSON = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
ADA = '{"name":"Ada","age":36}'


def lacking(*servers: ScriptedServer, overrides: dict[str, Any], **provider: Any) -> dict[str, Any]:
    """A configuration whose providers have these facts; each is tried once."""
    made = config(*servers, retries={"attempts": 1})
    for of_one in made["providers"].values():
        of_one |= {"overrides": overrides, **provider}
    return made


def sent(server: ScriptedServer) -> list[dict[str, Any]]:
    """The bodies the provider got."""
    return [json.loads(request.body) for request in server.requests]


def said(text: str, finish: str = "stop", **members: Any) -> bytes:
    """A whole answer that ends in *finish*."""
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return wire_answer(json.dumps(completion(choices=choices, **members)).encode())


def called(name: str = "look", arguments: str = '{"place":"here"}') -> bytes:
    """A whole answer that calls a tool."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    return wire_answer(json.dumps(completion(choices=choices)).encode())


def calls_of(answer: Answer) -> list[tuple[str, Any]]:
    """Name and decoded arguments of each call of a whole answer."""
    message = answer.json["choices"][0]["message"]
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def text_of_whole(answer: Answer) -> str | None:
    content: str | None = answer.json["choices"][0]["message"]["content"]
    return content


def in_turn(*answers: bytes | Script) -> Callable[[RecordedRequest], Script]:
    """One answer for each request; the last one again and again."""

    def script(request: RecordedRequest) -> Script:
        found = answers[min(request.number, len(answers)) - 1]
        return [found] if isinstance(found, bytes) else found

    return script
