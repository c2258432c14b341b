"""Some hundreds of requests made from our own description, some sound and some broken: every answer is as described."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest

from tests.fakes.gateway import KEY
from tests.fakes.raw_client import Answer
from tests.fuzz.fuzzed import ADMIN_KEY, Fuzzed, fuzzed_gateway
from tests.fuzz.generated import Generator

_CREDENTIALS = {"public": "", "key": KEY, "admin": ADMIN_KEY}
_ROUNDS = 25


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
    client = await fuzzed.gateway.connect()
    await client.send(request)
    try:
        return await client.answer(60)  # it may hold 128 choices with the probabilities of each token
    finally:
        await client.close()


async def check_answers(fuzzed: Fuzzed, seeds: range, broken: float) -> Counter[tuple[str, int]]:
    """Ask every operation once for each of *seeds*; how often each was answered with what."""
    statuses = Counter[tuple[str, int]]()
    for method, path, operation in operations(fuzzed.description):
        key = _CREDENTIALS[operation["x-scope"]]
        for seed in seeds if "requestBody" in operation or "parameters" in operation else [0]:
            request = request_of(Generator(fuzzed.description, seed, broken=broken), method, path, operation, key)
            answer = await ask(fuzzed, request)
            statuses[f"{method} {path}", answer.status] += 1
            try:
                check(fuzzed.description, operation, answer)
            except (AssertionError, jsonschema_rs.ValidationError) as error:
                pytest.fail(f"{error}\n{request!r}\n{answer.status} {answer.body!r}")
    return statuses


@pytest.mark.parametrize("broken", [0.0, 0.1], ids=["sound", "broken"])
async def test_every_answer_is_as_described(broken: float) -> None:
    async with fuzzed_gateway() as fuzzed:
        statuses = await check_answers(fuzzed, range(_ROUNDS), broken)

    assert statuses["POST /v1/chat/completions", 200] > 0
    assert statuses["POST /admin/keys", 201] > 0


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("provider", ["openai_compatible", "groq", "cerebras", "vllm", "llama_cpp_server"])
async def test_every_answer_is_as_described_whoever_is_behind_it(
    provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with fuzzed_gateway(provider) as fuzzed:
        for broken in (0.0, 0.02, 0.2):
            await check_answers(fuzzed, range(1000, 1250), broken)
        assert await fuzzed.server_errors() == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


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
