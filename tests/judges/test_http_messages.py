"""Every kind of answer, and the request to an upstream, pleases a lint for HTTP messages."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.fakes.gateway import KEY, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import good_stream, whole
from tests.fakes.raw_client import RawClient
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.judges.environments import ask, interpreter

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ADMIN_KEY: Final = "admin-key-0123456789"
_BEARER: Final = f"Authorization: Bearer {KEY}"
_ADMIN: Final = f"Authorization: Bearer {ADMIN_KEY}"

GETS: Final = [
    ("/", ()),
    ("/health/live", ()),
    ("/health/ready", ()),
    ("/metrics", ()),
    ("/openapi.json", ()),
    ("/v1/models", (_BEARER,)),
    ("/v1/models/m", (_BEARER,)),
    ("/v1/models/none", (_BEARER,)),
    ("/v1/models", ()),
    ("/v1/chat/completions", (_BEARER,)),
    ("/v1/v1/models", (_BEARER,)),
    ("/nothing", ()),
    ("/admin/keys", (_ADMIN,)),
    ("/admin/keys", ()),
    ("/admin/reload", (_ADMIN,)),
]


def bare(line: str, *headers: str) -> bytes:
    return "\r\n".join([line, *headers, "", ""]).encode()


def requests() -> list[bytes]:
    """One for each kind of answer."""
    chat = "/v1/chat/completions"
    head = f"POST {chat} HTTP/1.1"
    return [
        *(
            bare(f"{method} {path} HTTP/1.1", "Host: x", *headers)
            for path, headers in GETS
            for method in ("GET", "HEAD")
        ),
        request(chat, chat_body()),
        request(chat, chat_body(stream=True)),
        request(chat, chat_body(), key=None),
        request(chat, chat_body(model="none")),
        request(chat, b"{"),
        request("/admin/keys", {"name": "a"}, key=ADMIN_KEY),
        request("/admin/keys", {"name": 1}, key=ADMIN_KEY),
        request("/admin/reload", b"", key=ADMIN_KEY),
        bare("DELETE /admin/keys/key_none HTTP/1.1", "Host: x", _ADMIN),
        bare(f"PUT {chat} HTTP/1.1", "Host: x"),
        bare("DELETE /health/live HTTP/1.1", "Host: x"),
        bare("PATCH /admin/keys HTTP/1.1", "Host: x", _ADMIN),
        bare("OPTIONS * HTTP/1.1", "Host: x"),
        bare("OPTIONS /v1/models HTTP/1.1", "Host: x"),
        bare("CONNECT x:1 HTTP/1.1", "Host: x"),
        bare("TRACE / HTTP/1.1", "Host: x"),
        bare(head),
        bare(head, "Host: x", "Content-Length: 99999999999"),
        bare(head, "Host: x", "Content-Length: 1", "Content-Encoding: gzip"),
        bare(head, "Host: x", "Content-Length: 1", "Expect: tea"),
        bare(head, "Host: x", "X: " + "y" * 40_000),
        bare("HEAD / HTTP/1.1"),
    ]


def script_for(asked: RecordedRequest) -> Script:
    return good_stream("Hello") if json.loads(asked.body).get("stream") else [whole()]


async def answer_to(client: RawClient, sent: bytes) -> dict[str, Any]:
    """The answer as the judge wants it."""
    method, target, _ = sent.split(b"\r\n")[0].decode().split(" ")
    await client.send(sent)
    answer = await client.answer(head_request=method == "HEAD")
    assert answer.complete
    return {
        "method": method,
        "target": target if target.startswith("/") else "/",
        "status": answer.status,
        "phrase": "",
        "headers": list(answer.headers.items()),
        "body": answer.body.decode(),
    }


def sent_on(raw_head: bytes, body: bytes) -> dict[str, Any]:
    first, *lines = raw_head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    return {"method": method, "target": target, "headers": headers, "body": body.decode()}


async def test_a_lint_finds_nothing_bad(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.cache is not None
    python = interpreter("httplint", pytestconfig.cache.mkdir("judges"))
    messages = []
    async with ScriptedServer(script_for) as upstream:
        settings = {**config(upstream), "auth": {"admin_key": ADMIN_KEY}}
        async with running_gateway(settings) as gateway:
            for sent in requests():
                client = await gateway.connect()
                messages.append(await answer_to(client, sent))
                await client.close()
        messages += [sent_on(asked.raw_head, asked.body) for asked in upstream.requests]

    notes = await ask(python, "httplint_judge.py", {"messages": messages})

    told = [
        (f"{message['method']} {message['target']} {message.get('status', 'upstream')}", note)
        for message, found in zip(messages, notes, strict=True)
        for note in found
    ]
    assert {message.get("status") for message in messages} >= {None, 200, 201, 400, 401, 404, 405, 413, 415, 417, 431}
    assert told == [], json.dumps(told, indent=1)
