"""A forced tool call that the provider was told to make, and that does not come, is asked for once more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import running_gateway
from tests.fakes.openai_answers import good_stream, text_of
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.shapes import LOOK, WAIT, called, calls_of, in_turn, lacking, said, sent

HERE = {"place": "here"}
NAMED = {"type": "function", "function": {"name": "look"}}
BOUND = said('{"tool_calls": [{"name": "look", "arguments": {"place": "here"}}]}')
ALONE = said('{"place": "here"}')
TEXT = said("I would rather talk.")


def asking(choice: Any = "required", **more: Any) -> dict[str, Any]:
    return {"tools": [LOOK, WAIT], "tool_choice": choice, **more}


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
async def test_a_call_that_comes_is_passed_on_as_it_is(choice: Any) -> None:
    async with ScriptedServer([called()]) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(**asking(choice))

        assert (got.status, calls_of(got), len(server.requests)) == (200, [("look", HERE)], 1)
        assert "x-gateway-adjusted" not in got.headers
        assert sent(server)[0]["tool_choice"] == choice


@pytest.mark.parametrize(
    ("choice", "first", "second"),
    [("required", TEXT, BOUND), (NAMED, TEXT, ALONE), (NAMED, called("wait", "{}"), ALONE)],
    ids=["none-at-all", "none-of-the-name", "one-of-another-name"],
)
async def test_a_call_that_does_not_come_is_bound_by_a_schema(choice: Any, first: bytes, second: bytes) -> None:
    script = in_turn(first, second)
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(**asking(choice))
        row = await gateway.row()

        assert (got.status, calls_of(got)) == (200, [("look", HERE)])
        assert got.json["choices"][0]["finish_reason"] == "tool_calls"
        assert got.headers["x-gateway-adjusted"] == "tool_choice=emulated"
        free, bound = sent(server)
        assert (free["tool_choice"], bound["response_format"]["type"]) == (choice, "json_schema")
        assert "tools" not in bound
        # Both answers are paid for, and told.
        assert got.json["usage"]["total_tokens"] == 24
        assert (row["prompt_tokens"], row["completion_tokens"], row["estimated"]) == (18, 6, False)


async def test_a_model_that_calls_nothing_whatever_it_is_told_is_given_up() -> None:
    async with ScriptedServer([TEXT]) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(**asking())

        assert (got.status, got.error["code"]) == (502, "schema_validation_failed")
        assert len(server.requests) == 3, "as it is, then bound by the schema and asked once more"


async def test_who_wants_no_emulation_is_told_that_the_call_is_missing() -> None:
    async with ScriptedServer([TEXT]) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat("x-gateway-unsupported: reject", **asking(NAMED))
        row = await gateway.row()

        assert (got.status, got.error["code"]) == (502, "tool_call_missing")
        assert "calling 'look'" in got.error["message"]
        assert len(server.requests) == 1
        assert (row["prompt_tokens"], row["estimated"]) == (9, False)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_an_answer_that_was_cut_need_not_have_its_call(finish: str) -> None:
    script = [said("I would", finish)]
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(**asking())

        assert (got.status, got.json["choices"][0]["finish_reason"], len(server.requests)) == (200, finish, 1)


@pytest.mark.parametrize("choice", ["auto", "none"])
async def test_who_may_speak_is_not_asked_for_a_call(choice: str) -> None:
    async with ScriptedServer([TEXT]) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(**asking(choice))

        assert (got.status, len(server.requests)) == (200, 1)


async def test_a_stream_is_passed_on_as_it_comes() -> None:
    async with ScriptedServer(good_stream()) as server, running_gateway(lacking(server, overrides={})) as gateway:
        got = await gateway.chat(**asking(), stream=True)

        assert text_of(got.body) == "Hello there."
        assert json.loads(server.requests[0].body)["tool_choice"] == "required"


async def test_of_several_choices_each_needs_its_call() -> None:
    one_choice = {"params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}

    def script(request: Any) -> list[bytes]:
        body = json.loads(request.body)
        return [BOUND] if "response_format" in body else [TEXT] if request.number == 1 else [called()]

    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=one_choice)) as gateway:
        got = await gateway.chat(**asking(n=2))

        assert got.status == 200
        assert [len(choice["message"]["tool_calls"]) for choice in got.json["choices"]] == [1, 1]
        assert len(server.requests) == 3
