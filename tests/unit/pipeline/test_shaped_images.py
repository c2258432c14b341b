"""Images by address for engines that want their bytes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, chat_body, request, running_gateway
from tests.fakes.openai_answers import good_stream, text_of, whole
from tests.fakes.scripted_server import Hang, ScriptedServer
from tests.fakes.scripted_server import answer as wire_answer
from tests.fakes.shapes import lacking, sent, text_of_whole

BYTES_ONLY = {"messages": {"content_parts": {"text": "native", "image_url": "bytes"}}}
PIXEL = b"\x89PNG\r\n\x1a\n"
IMAGE = wire_answer(PIXEL, content_type="image/png")
INLINE = "data:image/png;base64," + base64.b64encode(PIXEL).decode()


def showing(*urls: str) -> list[dict[str, Any]]:
    parts = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}} for url in urls]
    return [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, *parts]}]


def settings(server: ScriptedServer, *, private: bool = True) -> dict[str, Any]:
    return {**lacking(server, overrides=BYTES_ONLY), "server": {"fetch_private_addresses": private}}


def urls_of(body: dict[str, Any]) -> list[str]:
    return [part["image_url"]["url"] for part in body["messages"][0]["content"] if part["type"] == "image_url"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_images_are_fetched_and_sent_along(streamed: bool) -> None:
    script = good_stream("A pixel.") if streamed else [whole("A pixel.")]
    async with (
        ScriptedServer(script) as server,
        ScriptedServer([IMAGE]) as pictures,
        running_gateway(settings(server)) as gateway,
    ):
        url = f"http://127.0.0.1:{pictures.port}/"
        answer = await gateway.chat(messages=showing(url + "a.png", INLINE, url + "b.png"), stream=streamed)

        assert (text_of(answer.body) if streamed else text_of_whole(answer)) == "A pixel."
        (body,) = sent(server)
        assert urls_of(body) == [INLINE, INLINE, INLINE]
        assert body["messages"][0]["content"][1]["image_url"]["detail"] == "low"
        assert sorted(found.path for found in pictures.requests) == ["/a.png", "/b.png"]
        assert answer.headers["x-gateway-adjusted"] == "messages=rewritten"


async def test_an_image_named_twice_is_fetched_once() -> None:
    async with (
        ScriptedServer([whole()]) as server,
        ScriptedServer([IMAGE]) as pictures,
        running_gateway(settings(server)) as gateway,
    ):
        url = f"http://127.0.0.1:{pictures.port}/a.png"
        await gateway.chat(messages=showing(url, url), n=1)

        assert urls_of(sent(server)[0]) == [INLINE, INLINE]
        assert len(pictures.requests) == 1


async def test_images_are_fetched_once_for_all_choices() -> None:
    facts = {**BYTES_ONLY, "params": {"n": {"support": "ignored", "patch": "fan_out"}}}
    async with ScriptedServer([whole()]) as server, ScriptedServer([IMAGE]) as pictures:
        made = {**lacking(server, overrides=facts), "server": {"fetch_private_addresses": True}}
        async with running_gateway(made) as gateway:
            answer = await gateway.chat(messages=showing(f"http://127.0.0.1:{pictures.port}/a.png"), n=3)

        assert len(answer.json["choices"]) == 3
        assert [urls_of(body) for body in sent(server)] == [[INLINE]] * 3
        assert len(pictures.requests) == 1


async def test_images_that_are_there_already_cost_nothing() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(messages=showing(INLINE))

        assert answer.status == 200
        assert "x-gateway-adjusted" not in answer.headers


async def test_an_image_that_cannot_be_had_is_the_clients_fault_and_named_by_its_place() -> None:
    async with (
        ScriptedServer([whole()]) as server,
        ScriptedServer([wire_answer(b"{}", status=404)]) as pictures,
        running_gateway(settings(server)) as gateway,
    ):
        answer = await gateway.chat(messages=showing(INLINE, f"http://127.0.0.1:{pictures.port}/hidden.png"))

        assert answer.status == 400
        assert answer.error["param"] == "messages[0].content[2].image_url.url"
        assert answer.error["code"] == "invalid_image_url"
        assert "hidden" not in answer.body.decode()
        assert "127.0.0.1" not in answer.body.decode()
        assert not server.requests
        assert (await gateway.row())["cost_nusd"] is None


async def test_images_in_our_own_network_are_not_fetched_unless_the_operator_says_so() -> None:
    async with (
        ScriptedServer([whole()]) as server,
        ScriptedServer([IMAGE]) as pictures,
        running_gateway(settings(server, private=False)) as gateway,
    ):
        answer = await gateway.chat(messages=showing(f"http://127.0.0.1:{pictures.port}/a.png"))

        assert answer.status == 400
        assert pictures.connections == 0


async def test_more_images_than_anybody_needs_are_refused() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        answer = await gateway.chat(messages=showing(*(f"http://127.0.0.1:9/{number}.png" for number in range(17))))

        assert (answer.status, answer.error["param"]) == (400, "messages")


async def test_a_client_that_leaves_ends_the_fetching() -> None:
    async with (
        ScriptedServer([whole()]) as server,
        ScriptedServer([Hang()]) as pictures,
        running_gateway(settings(server)) as gateway,
    ):
        client = await gateway.connect()
        body = chat_body(messages=showing(f"http://127.0.0.1:{pictures.port}/a.png"))
        await client.send(request(CHAT, body))
        await pictures.wait_until(lambda server: len(server.requests) == 1)
        await client.close()

        await pictures.wait_until(lambda server: server.open_connections == 0, seconds=0.25)
        assert not server.requests
