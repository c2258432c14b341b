"""Some hundreds of requests made from our own description, some sound and some broken: every answer is as described."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest

from tests.fakes.gateway import KEY
from tests.fakes.raw_client import Answer, RawClient
from tests.fuzz.fuzzed import ADMIN_KEY, Fuzzed, fuzzed_gateway
from tests.fuzz.generated import Generator

_CREDENTIALS = {"public": "", "key": KEY, "admin": ADMIN_KEY}
_ROUNDS = 40


def operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def request_of(generator: Generator, method: str, path: str, operation: dict[str, Any], key: str) -> bytes:
    """A request to *operation*, as it goes over the wire."""
    headers = {"host": "gateway.test", "authorization": f"Bearer {key}"} if key else {"host": "gateway.test"}
    query = []
    for parameter in operation.get("parameters", ()):
        text = str(generator.value(parameter["schema"], depth=1))
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(text, safe="") or "x")
        elif parameter["in"] == "query":
            query.append(f"{quote(parameter['name'])}={quote(text)}")
        elif text.isascii() and text.isprintable():
            headers[parameter["name"]] = text
    body = b""
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = json.dumps(generator.value(schema)).encode()
        headers["content-type"] = "application/json"
    headers["content-length"] = str(len(body))
    target = path + ("?" + "&".join(query) if query else "")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body


def check(description: dict[str, Any], operation: dict[str, Any], answer: Answer) -> None:
    """Assert that *answer* is one that *operation* is described to have."""
    described = operation["responses"]
    response = described.get(str(answer.status)) or described.get(f"{answer.status // 100}XX")
    assert response is not None, "no such status"
    assert answer.status < 500
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if answer.body or kind:
        assert kind in response["content"], kind
    if kind == "application/json":
        schema = {**response["content"][kind]["schema"], "components": description["components"]}
        jsonschema_rs.validator_for(schema).validate(answer.json)


async def ask(fuzzed: Fuzzed, request: bytes) -> Answer:
    client: RawClient = await fuzzed.gateway.connect()
    await client.send(request)
    try:
        return await client.answer()
    finally:
        await client.close()


@pytest.mark.parametrize("broken", [0.0, 0.1], ids=["sound", "broken"])
async def test_every_answer_is_as_described(broken: float) -> None:
    async with fuzzed_gateway() as fuzzed:
        statuses: dict[str, set[int]] = {}
        for method, path, operation in operations(fuzzed.description):
            key = _CREDENTIALS[operation["x-scope"]]
            for seed in range(_ROUNDS if "requestBody" in operation or "parameters" in operation else 1):
                generator = Generator(fuzzed.description, seed, broken=broken)
                request = request_of(generator, method, path, operation, key)
                answer = await ask(fuzzed, request)
                statuses.setdefault(f"{method} {path}", set()).add(answer.status)
                try:
                    check(fuzzed.description, operation, answer)
                except (AssertionError, jsonschema_rs.ValidationError) as error:
                    pytest.fail(f"{error}\n{request!r}\n{answer.status} {answer.body!r}")

        assert 200 in statuses["POST /v1/chat/completions"]
        assert 201 in statuses["POST /admin/keys"]


async def test_nothing_is_done_for_whoever_has_no_good_key() -> None:
    async with fuzzed_gateway() as fuzzed:
        keyed = [one for one in operations(fuzzed.description) if one[2]["x-scope"] != "public"]
        for seed in range(5):
            generator = Generator(fuzzed.description, seed)
            chance = random.Random(seed)
            for method, path, operation in keyed:
                # One that is no key at all, the others' key, and half a key.
                others = KEY if operation["x-scope"] == "admin" else ADMIN_KEY
                if operation["tags"] == ["models"]:
                    others = "sk-not-a-key-0123456789"  # the operator may see the models too
                for key in ("", others, KEY[: chance.randrange(len(KEY))], ADMIN_KEY[:-1]):
                    request = request_of(generator, method, path, operation, key)
                    answer = await ask(fuzzed, request)

                    # A made-up id may hold a slash, which makes it a path that nobody has.
                    assert answer.error["code"] in ("invalid_api_key", "not_found"), (request, answer.body)
                    check(fuzzed.description, operation, answer)

        assert fuzzed.upstream.requests == []
        assert [record.key.name for record in await fuzzed.gateway.services.keys.page(limit=10)] == ["test"]
