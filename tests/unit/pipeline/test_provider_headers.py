"""Headers that the file has for a provider go with each request, in place of our own of the same name."""

from __future__ import annotations

from tests.fakes.gateway import chat_body, config, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer


async def test_a_header_of_the_file_replaces_our_own() -> None:
    async with ScriptedServer([whole()]) as upstream:
        settings = config(upstream)
        for provider in settings["providers"].values():
            provider["headers"] = {"User-Agent": "mine", "Authorization": "Basic abc", "X-Team": "a"}
        async with running_gateway(settings) as gateway:
            assert (await gateway.post("/v1/chat/completions", chat_body())).status == 200

        (asked,) = upstream.requests
        lines = asked.raw_head.decode().lower().split("\r\n")
        for name, value in (("user-agent", "mine"), ("authorization", "basic abc"), ("x-team", "a")):
            assert [line for line in lines if line.startswith(f"{name}:")] == [f"{name}: {value}"]
