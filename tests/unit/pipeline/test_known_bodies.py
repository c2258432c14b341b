"""Bodies that differ in nothing but their messages are sent on as each would have been alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.data_plane import plane, strict_json
from tests.fakes.gateway import CHAT, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import completion, whole
from tests.fakes.scripted_server import ScriptedServer, answer


def _say(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def test_what_comes_again_is_read_and_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def decode(raw: bytes) -> Any:
        read.append(raw)
        return real(raw)

    real = strict_json.decode_members
    monkeypatch.setattr(plane, "decode_members", decode)
    async with ScriptedServer([whole()]) as server, running_gateway(config(server)) as gateway:
        client = await gateway.connect()
        bodies = [chat_body(messages=_say("x" * number), temperature=0.5, user="u") for number in range(5)]
        for body in bodies:
            await client.send(request(CHAT, body))
            assert (await client.answer()).status == 200
        changed = chat_body(messages=_say("y"), temperature=1.5, user="u")
        await client.send(request(CHAT, changed))
        assert (await client.answer()).status == 200

        assert [json.loads(sent.body) for sent in server.requests] == [
            {**body, "model": "up1"} for body in [*bodies, changed]
        ]
        assert [json.loads(raw) for raw in read] == [*bodies[:2], changed]


async def test_a_model_of_the_same_name_is_another_one_after_a_reload() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(config(server)) as gateway:
        client = await gateway.connect()
        for number in range(4):
            await client.send(request(CHAT, chat_body(messages=_say(f"{number}"), top_p=0.5)))
            assert (await client.answer()).status == 200
            if number == 2:
                settings = config(server)
                settings["models"]["m"]["targets"][0]["model"] = "another"
                gateway.file.write_text(json.dumps(settings))
                await gateway.services.reloads.reload("test")

        assert [json.loads(sent.body)["model"] for sent in server.requests] == ["up1", "up1", "up1", "another"]


async def test_an_answer_without_usage_is_charged_by_its_own_prompt() -> None:
    told = answer(json.dumps({**completion(), "usage": None}).encode())
    async with ScriptedServer([told]) as server, running_gateway(config(server)) as gateway:
        client = await gateway.connect()
        for size in (10, 10, 3000):
            await client.send(request(CHAT, chat_body(messages=_say("x" * size))))
            assert (await client.answer()).status == 200

        rows = await gateway.rows()
        assert [row["estimated"] for row in rows] == [True] * 3
        tokens = sorted(row["prompt_tokens"] for row in rows)
        assert tokens[0] == tokens[1] < 100 < 1000 < tokens[2]
