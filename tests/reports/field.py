"""One gateway in front of one scripted upstream: what a report from the field needs to be told again.

Each test names the report it retells, as ``owner/repo#number``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.gateway import RunningGateway, config, running_gateway
from tests.fakes.openai_answers import completion, delta, good_stream, payloads, refusal
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.fakes.scripted_server import answer as wire_answer

Json = dict[str, Any]
Rule = Callable[[Json], str | None]
"""What a strict server has to say against a body, if anything."""

USER: Json = {"role": "user", "content": "What is the weather?"}
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CLOCK: Json = {
    "type": "function",
    "function": {"name": "get_time", "description": "Now", "parameters": {"type": "object", "properties": {}}},
}
PERSON: Json = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
AS_PERSON: Json = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
HELLO = delta(role="assistant", content="hello")
"""The first event of a stream that says hello in one."""


def call(call_id: str, name: str = "get_weather", arguments: Any = '{"city":"Oslo"}') -> Json:
    """A tool call of a message."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def saying(message: Json, finish: str | None = "stop", **members: Any) -> bytes:
    """A whole answer with this message."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return wire_answer(json.dumps(completion(**{"choices": [choice], **members})).encode())


def told(body: Any, status: int = 200, content_type: str = "application/json", headers: str = "") -> Script:
    """What an upstream answers, in whatever shape."""
    sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return [wire_answer(sent, status, content_type, headers)]


def hello(request: RecordedRequest) -> Script:
    """Says hello, streamed where that is asked for."""
    streamed = json.loads(request.body or b"{}").get("stream") is True
    return good_stream("hello") if streamed else [saying({"content": "hello"})]


def strict(*rules: Rule, status: int = 400) -> Callable[[RecordedRequest], Script]:
    """A server that refuses what its rules have something to say against, and says hello to the rest."""

    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        told = next((message for rule in rules if (message := rule(body)) is not None), None)
        return hello(request) if told is None else [refusal(status, told)]

    return script


def lacks(*names: str) -> Rule:
    """A server that knows none of these parameters."""
    return lambda body: next((f"property '{name}' is unsupported" for name in names if name in body), None)


@dataclass(slots=True)
class Field:
    """The gateway, and what its upstream was asked."""

    gateway: RunningGateway
    server: ScriptedServer

    async def ask(self, *headers: str, **body: Any) -> Answer:
        """A chat request to the only model."""
        return await self.gateway.chat(*headers, **{"messages": [USER], **body})

    @property
    def sent(self) -> list[Json]:
        """The bodies the upstream got."""
        return [json.loads(request.body) for request in self.server.requests]


@contextlib.asynccontextmanager
async def in_front_of(
    script: Script | Callable[[RecordedRequest], Script] = hello,
    provider: str = "openai_compatible",
    model: str = "up1",
    overrides: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Field]:
    """The gateway in front of a server that plays *provider*, an entry of the provider list."""
    async with ScriptedServer(script) as server:
        made = config(server, retries={"attempts": 1}, **settings)
        made["providers"]["p1"] |= {"type": provider, "overrides": dict(overrides or {})}
        made["models"]["m"]["targets"][0]["model"] = model
        async with running_gateway(made) as gateway:
            yield Field(gateway, server)


@dataclass(slots=True)
class Heard:
    """What a client makes of a stream that it reads as OpenAI's own client does."""

    content: str = ""
    reasoning: str = ""
    calls: dict[int, Json] = field(default_factory=dict)
    finish: dict[int, str] = field(default_factory=dict)
    errors: list[Json] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    usages: list[Json] = field(default_factory=list)
    empty: int = 0
    """Chunks without a choice and without usage."""
    done: bool = False

    @property
    def tools(self) -> list[tuple[str, Any]]:
        """Name and decoded arguments of each call."""
        return [(one["name"], json.loads(one["arguments"])) for _, one in sorted(self.calls.items())]


def heard(answer: Answer, index: int = 0) -> Heard:
    """The stream in *answer*, as far as the choice *index* goes."""
    assert answer.status == 200, answer.body
    found = Heard()
    for chunk in payloads(answer.body):
        if chunk == "[DONE]":
            found.done = True
        elif "error" in chunk:
            found.errors.append(chunk["error"])
        else:
            _hear(found, chunk, index)
    return found


def _hear(found: Heard, chunk: Json, index: int) -> None:
    found.ids.add(chunk["id"])
    if chunk.get("usage"):
        found.usages.append(chunk["usage"])
    elif not chunk["choices"]:
        found.empty += 1
    for choice in chunk["choices"]:
        if choice["finish_reason"] is not None:
            found.finish[choice["index"]] = choice["finish_reason"]
        if choice["index"] == index:
            found.content += choice["delta"].get("content") or ""
            found.reasoning += choice["delta"].get("reasoning_content") or ""
            for part in choice["delta"].get("tool_calls") or ():
                _join(found.calls, part)


def _join(calls: dict[int, Json], part: Json) -> None:
    """As clients do: the first delta of an index has id and name, all further ones add to its arguments."""
    known = calls.get(part["index"])
    function = part["function"]
    if known is None:
        assert part["id"], part
        calls[part["index"]] = {
            "id": part["id"],
            "name": function["name"],
            "arguments": function.get("arguments") or "",
        }
        return
    assert part.get("id") in (None, known["id"]), part
    known["arguments"] += function.get("arguments") or ""
