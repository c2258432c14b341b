"""What goes on across a reload: streams under way, connections, limits, rests and counters."""

from __future__ import annotations

from typing import Any

from tests.fakes.gateway import RunningGateway, chat_body, provider, request, running_gateway
from tests.fakes.openai_answers import ROLE, good_stream, refusal, stream, text_of, whole, words
from tests.fakes.raw_client import RawClient
from tests.fakes.scripted_server import Script, ScriptedServer, Sleep
from tests.unit.reload.reloading import reload_to, settings

SLOW: Script = [*stream(ROLE, *words("old"), end=False), Sleep(0.6), *good_stream("er")[1:]]


async def test_a_stream_under_way_ends_as_it_began() -> None:
    async with (
        ScriptedServer(SLOW) as old,
        ScriptedServer(good_stream("new")) as new,
        running_gateway(settings(old)) as gateway,
    ):
        client = await begun(gateway)
        await reload_to(gateway, settings(new))
        fresh = await gateway.chat(stream=True)
        body = await client.rest()

    assert text_of(fresh.body) == "new"
    assert text_of(body) == "er"  # `begun` has read what came before
    assert body.endswith(b"data: [DONE]\n\n")
    assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_a_stream_ends_at_a_target_that_is_no_longer_in_the_file() -> None:
    async with ScriptedServer(SLOW) as old, ScriptedServer([whole()]) as new, running_gateway(settings(old)) as gateway:
        client = await begun(gateway)
        content = settings(9)
        content["providers"] = {"q": provider(new)}
        content["models"] = {"n": {"targets": [{"provider": "q", "model": "up"}]}}
        await reload_to(gateway, content)
        gone, there = await gateway.chat(), await gateway.chat(model="n")
        body = await client.rest()
        rows = await gateway.rows()

    assert (gone.status, gone.error["code"], there.status) == (404, "model_not_found", 200)
    assert text_of(body) == "er"  # `begun` has read what came before
    assert sorted((row["model"], row["target"], row["status"]) for row in rows if row["target"]) == [
        ("m", "p1/up1", 200),
        ("n", "q/up", 200),
    ]


async def test_connections_to_an_unchanged_provider_are_kept() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        await gateway.chat()
        content = settings(server)
        content["providers"]["p1"]["max_concurrency"] = 7
        await reload_to(gateway, {**content, "aliases": {"a": "m"}})
        await gateway.chat()

    assert (len(server.requests), server.connections) == (2, 1)


async def test_requests_of_the_old_configuration_count_for_the_new_limit() -> None:
    def limited(server: ScriptedServer, limit: int) -> dict[str, Any]:
        content = settings(server)
        content["providers"]["p1"]["max_concurrency"] = limit
        return content

    async with ScriptedServer(SLOW) as server, running_gateway(limited(server, 5)) as gateway:
        client = await begun(gateway)
        await reload_to(gateway, limited(server, 1))
        refused = await gateway.chat()
        await client.rest()
        await gateway.quiet()
        allowed = await gateway.chat(stream=True)

    assert (refused.status, len(server.requests)) == (503, 2)
    assert allowed.status == 200


async def test_a_key_that_rests_goes_on_resting() -> None:
    def by_key(recorded: Any) -> Script:
        good = recorded.headers["authorization"].endswith("good")
        return [whole() if good else refusal(401, "Incorrect API key")]

    async with ScriptedServer(by_key) as server:
        content = settings(server)
        content["providers"]["p1"] = provider(
            server, api_key=None, api_keys=["sk-0123456789-bad", "sk-0123456789-good"]
        )
        del content["providers"]["p1"]["api_key"]
        async with running_gateway(content) as gateway:
            assert (await gateway.chat()).status == 200
            await reload_to(gateway, {**content, "aliases": {"a": "m"}})
            for _ in range(3):
                assert (await gateway.chat()).status == 200

    assert [seen.headers["authorization"][-4:] for seen in server.requests].count("-bad") == 1


async def test_counters_go_on_under_the_names_of_old_models_too() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        await gateway.chat()
        content = settings(server)
        content["models"]["n"] = content["models"].pop("m")
        await reload_to(gateway, content)
        await gateway.chat(model="n")

        assert gateway.metric("gateway_requests_total", model="m", status="200") == 1
        assert gateway.metric("gateway_requests_total", model="n", status="200") == 1
        assert gateway.metric("gateway_upstream_attempts_total", target="p1/up1", outcome="ok") == 2


async def begun(gateway: RunningGateway) -> RawClient:
    """A client whose stream has begun."""
    client = await gateway.connect()
    await client.send(request("/v1/chat/completions", chat_body(stream=True)))
    assert (await client.head())[0] == 200
    assert b"assistant" in await client.chunk()
    return client
