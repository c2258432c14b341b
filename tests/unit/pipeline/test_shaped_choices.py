"""Several choices from a provider that gives one: n requests, one answer."""

from __future__ import annotations

import json

import pytest

from adapters.target import Target
from gateway.pipeline.holds import CountingLedger, Hold, Resolution
from tests.fakes.gateway import CHAT, chat_body, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, payloads, stream, usage_chunk, whole, words
from tests.fakes.scripted_server import Hang, RecordedRequest, Script, ScriptedServer
from tests.fakes.scripted_server import answer as wire_answer
from tests.unit.pipeline.one_choice import by_seed, sent, settings, texts


async def test_each_choice_is_a_request_of_its_own_with_a_seed_of_its_own() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=3, seed=7, temperature=0.5)

        assert answer.status == 200, answer.body
        assert sorted(body["seed"] for body in sent(server)) == [7, 8, 9]
        assert all("n" not in body and body["temperature"] == 0.5 for body in sent(server))
        assert [choice["index"] for choice in answer.json["choices"]] == [0, 1, 2]
        assert answer.headers["x-gateway-adjusted"] == "n=split"


async def test_without_a_seed_none_is_made_up() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        await gateway.chat(n=2)

        assert all("seed" not in body for body in sent(server))


@pytest.mark.parametrize("n", [1, None])
async def test_one_choice_is_one_request(n: int | None) -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=n)

        assert answer.status == 200
        assert len(server.requests) == 1
        assert "x-gateway-adjusted" not in answer.headers


async def test_the_client_is_told_the_prompt_once_and_charged_for_it_with_every_choice() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=3)
        row = await gateway.row()

    assert answer.json["usage"] == {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    assert (row["prompt_tokens"], row["completion_tokens"]) == (27, 9)
    assert answer.headers["x-gateway-cost-usd"] == "0.000045000"
    assert row["cost_nusd"] == 27 * 1000 + 9 * 2000


async def test_the_streams_of_all_choices_are_told_as_one() -> None:
    scripts = {
        1: stream(ROLE, *words("Hel", "lo"), STOP, usage_chunk(), DONE),
        2: stream(ROLE, *words("By", "e"), STOP, usage_chunk(), DONE),
    }
    async with ScriptedServer(by_seed(scripts)) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=2, seed=1, stream=True, stream_options={"include_usage": True})
        row = await gateway.row()

    told = payloads(answer.body)
    assert texts(answer) == {0: "Hello", 1: "Bye"}
    assert told[-1] == "[DONE]"
    assert told[-2]["usage"] == {"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15}
    assert told[-2]["choices"] == []
    assert len({one["id"] for one in told[:-1]}) == 1
    assert not any("usage" in one for one in told[:-2])
    finished = [choice["index"] for one in told[:-1] for choice in one["choices"] if choice["finish_reason"]]
    assert sorted(finished) == [0, 1]
    assert (row["prompt_tokens"], row["completion_tokens"], row["status"]) == (18, 6, 200)
    assert answer.headers["x-gateway-adjusted"] == "n=split"


async def test_a_choice_is_told_while_another_is_silent() -> None:
    scripts = {1: stream(*words("early"), end=False), 2: [Hang()]}
    async with ScriptedServer(by_seed(scripts)) as server, running_gateway(settings(server)) as gateway:
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(n=2, seed=1, stream=True)))
        status, _ = await client.head()

        assert status == 200
        assert b"early" in await client.reader.readuntil(b"\n\n")


@pytest.mark.parametrize("at_a_time", [1, 2])
async def test_a_choice_is_whole_when_its_provider_says_so_even_if_the_body_goes_on(at_a_time: int) -> None:
    scripts: dict[int, Script] = {
        seed: [*stream(ROLE, *words("x"), STOP, usage_chunk(), DONE, end=False), Hang()] for seed in (1, 2)
    }
    few = {"max_concurrency": at_a_time}
    async with ScriptedServer(by_seed(scripts)) as server, running_gateway(settings(server, provider=few)) as gateway:
        answer = await gateway.chat(n=2, seed=1, stream=True)
        row = await gateway.row()

        assert payloads(answer.body)[-1] == "[DONE]"
        assert texts(answer) == {0: "x", 1: "x"}
        assert (row["prompt_tokens"], row["completion_tokens"]) == (18, 6)
        await server.wait_until(lambda server: server.open_connections == 0)


async def test_connections_of_several_choices_are_used_again() -> None:
    script = stream(ROLE, *words("x"), STOP, DONE)
    async with ScriptedServer(script) as server, running_gateway(settings(server)) as gateway:
        for _ in range(2):
            await gateway.chat(n=2, stream=True)

        assert (len(server.requests), server.connections) == (4, 2)


@pytest.mark.parametrize("streamed", [True, False])
async def test_choices_take_turns_where_the_provider_may_have_few_requests(streamed: bool) -> None:
    most = 0

    def script(request: RecordedRequest) -> Script:
        nonlocal most
        most = max(most, server.open_connections)
        return stream(ROLE, *words("x"), STOP, DONE) if streamed else [whole()]

    async with ScriptedServer(script) as server:
        async with running_gateway(settings(server, provider={"max_concurrency": 2})) as gateway:
            answer = await gateway.chat(n=5, stream=streamed)
            again = await gateway.chat(n=5, stream=streamed)

        assert (answer.status, again.status) == (200, 200)
        assert len(server.requests) == 10
        assert most <= 2


class WatchedLedger(CountingLedger):
    """Remembers for how many answers each hold was."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[int] = []

    def hold(self, key_id: str, target: Target, choices: int = 1) -> Hold:
        self.held.append(choices)
        return super().hold(key_id, target, choices)


async def test_one_hold_pays_for_every_choice_and_is_resolved_once() -> None:
    ledger = WatchedLedger()
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        gateway.services.ledger = ledger
        await gateway.chat(n=3)

    assert ledger.held == [3]
    assert ledger.resolutions[Resolution.SETTLED] == 1
    assert ledger.open_holds == 0


async def test_tool_calls_of_several_streams_stay_apart() -> None:
    def calling(name: str) -> Script:
        call = {"index": 0, "id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        return stream(delta(role="assistant", tool_calls=[call]), delta("tool_calls"), usage_chunk(), DONE)

    scripts = {1: calling("one"), 2: calling("two")}
    async with ScriptedServer(by_seed(scripts)) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(n=2, seed=1, stream=True)

    names: dict[int, str] = {}
    for one in payloads(answer.body)[:-1]:
        for choice in one["choices"]:
            for call in choice["delta"].get("tool_calls") or ():
                names[choice["index"]] = call["function"].get("name") or names[choice["index"]]
    assert names == {0: "one", 1: "two"}


async def test_choices_of_text_completions_are_split_too() -> None:
    body = {
        "id": "c",
        "object": "text_completion",
        "created": 1,
        "model": "up",
        "choices": [{"index": 0, "text": "x", "finish_reason": "stop"}],
    }
    async with (
        ScriptedServer([wire_answer(json.dumps(body).encode())]) as server,
        running_gateway(settings(server)) as gateway,
    ):
        answer = await gateway.post("/v1/completions", {"model": "m", "prompt": "The sea", "n": 2})

    assert [choice["index"] for choice in answer.json["choices"]] == [0, 1]
