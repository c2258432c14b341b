"""Schemas on providers that lack them: asked for in words, checked, asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import HELLO, running_gateway
from tests.fakes.openai_answers import payloads, text_of
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.shapes import ADA, AS_PERSON, in_turn, lacking, said, sent, text_of_whole

JSON_SCHEMA, JSON_OBJECT = "response_format.json_schema", "response_format.json_object"
NO_SCHEMA = {"params": {JSON_SCHEMA: {"support": "rejected", "patch": "emulate_schema"}}}
NOTHING = {
    "params": {
        JSON_SCHEMA: {"support": "ignored", "patch": "emulate_schema"},
        JSON_OBJECT: {"support": "ignored", "patch": "emulate_schema"},
    }
}
UNSURE = {"params": {JSON_SCHEMA: {"support": "native", "patch": "validate_schema"}}}


@pytest.mark.parametrize(
    ("facts", "format_sent"), [(NO_SCHEMA, {"type": "json_object"}), (NOTHING, None), (UNSURE, AS_PERSON)]
)
async def test_a_schema_is_asked_for_in_the_way_the_provider_knows(
    facts: dict[str, Any], format_sent: dict[str, Any] | None
) -> None:
    async with ScriptedServer([said(ADA)]) as server, running_gateway(lacking(server, overrides=facts)) as gateway:
        answer = await gateway.chat(response_format=AS_PERSON)

        assert (answer.status, text_of_whole(answer)) == (200, ADA), answer.body
        (body,) = sent(server)
        assert body.get("response_format") == format_sent
        in_words = '"required":["name","age"]' in body["messages"][0]["content"]
        assert in_words == (format_sent != AS_PERSON)
        assert answer.headers["x-gateway-adjusted"] == "response_format=emulated"


async def test_the_instruction_joins_the_system_message_there_is() -> None:
    system = {"role": "system", "content": "Be brief."}
    async with ScriptedServer([said(ADA)]) as server, running_gateway(lacking(server, overrides=NOTHING)) as gateway:
        await gateway.chat(messages=[system, HELLO], response_format=AS_PERSON)

        messages = sent(server)[0]["messages"]
        assert [message["role"] for message in messages] == ["system", "user"]
        assert messages[0]["content"].startswith("Be brief.")


async def test_an_object_is_asked_for_in_words_where_there_is_no_json_mode() -> None:
    async with ScriptedServer([said("{}")]) as server, running_gateway(lacking(server, overrides=NOTHING)) as gateway:
        answer = await gateway.chat(response_format={"type": "json_object"})

        assert answer.status == 200
        assert "response_format" not in sent(server)[0]
        assert "JSON" in sent(server)[0]["messages"][0]["content"]


async def test_the_fence_around_the_json_is_taken_off() -> None:
    fenced = said(f"```json\n{ADA}\n```")
    async with ScriptedServer([fenced]) as server, running_gateway(lacking(server, overrides=NOTHING)) as gateway:
        answer = await gateway.chat(response_format=AS_PERSON)

    assert text_of_whole(answer) == ADA


async def test_an_answer_that_does_not_conform_is_shown_to_the_model_with_what_is_wrong() -> None:
    script = in_turn(said('{"name":"Ada"}'), said(ADA))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=NO_SCHEMA)) as gateway:
        answer = await gateway.chat(response_format=AS_PERSON)
        row = await gateway.row()

        assert text_of_whole(answer) == ADA
        *_, assistant, complaint = sent(server)[1]["messages"]
        assert assistant == {"role": "assistant", "content": '{"name":"Ada"}'}
        assert '"age" is a required property' in complaint["content"]
    assert answer.json["usage"] == {"prompt_tokens": 18, "completion_tokens": 6, "total_tokens": 24}
    assert (row["prompt_tokens"], row["completion_tokens"]) == (18, 6)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("text", ["Ada, 36", '{"name":"Ada"}', ""])
async def test_a_model_that_cannot_be_brought_to_it_is_a_502(text: str, streamed: bool) -> None:
    async with ScriptedServer([said(text)]) as server, running_gateway(lacking(server, overrides=NO_SCHEMA)) as gateway:
        answer = await gateway.chat(response_format=AS_PERSON, stream=streamed)
        row = await gateway.row()

        assert answer.status == 502
        assert (answer.error["code"], answer.error["param"]) == ("schema_validation_failed", "response_format")
        assert len(server.requests) == 2
    assert (row["prompt_tokens"], row["completion_tokens"]) == (18, 6)  # it is owed all the same


async def test_another_target_is_asked_where_one_does_not_keep_to_the_schema() -> None:
    async with (
        ScriptedServer([said("no")]) as bad,
        ScriptedServer([said(ADA)]) as good,
        running_gateway(lacking(bad, good, overrides=UNSURE)) as gateway,
    ):
        answer = await gateway.chat(response_format=AS_PERSON)

    assert text_of_whole(answer) == ADA
    assert answer.headers["x-gateway-fallback-from"] == "p1/up1"


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_an_answer_that_was_cut_is_passed_on_as_it_is(finish: str) -> None:
    cut = said('{"name":', finish)
    async with ScriptedServer([cut]) as server, running_gateway(lacking(server, overrides=NO_SCHEMA)) as gateway:
        answer = await gateway.chat(response_format=AS_PERSON)

        assert (answer.status, text_of_whole(answer)) == (200, '{"name":')
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "schema", [{"type": "strin"}, {"$ref": "http://127.0.0.1:9/x.json"}, {"properties": {"a": {"pattern": "("}}}]
)
async def test_a_schema_that_is_none_is_refused_before_anything_is_sent(schema: dict[str, Any]) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    async with ScriptedServer([said(ADA)]) as server, running_gateway(lacking(server, overrides=NO_SCHEMA)) as gateway:
        answer = await gateway.chat(response_format=wanted)

        assert answer.status == 400
        assert answer.error["param"] == "response_format.json_schema.schema"
        assert not server.requests


async def test_a_checked_answer_is_streamed_once_it_is_known_to_conform() -> None:
    async with ScriptedServer([said(ADA)]) as server, running_gateway(lacking(server, overrides=UNSURE)) as gateway:
        answer = await gateway.chat(response_format=AS_PERSON, stream=True, stream_options={"include_usage": True})

        assert text_of(answer.body) == ADA
        assert "stream" not in sent(server)[0]
        told = payloads(answer.body)
        assert told[-1] == "[DONE]"
        assert told[-2]["usage"]["prompt_tokens"] == 9


async def test_each_of_several_choices_is_checked_by_itself() -> None:
    async with ScriptedServer([said(ADA)]) as server, running_gateway(lacking(server, overrides=UNSURE)) as gateway:
        answer = await gateway.chat(response_format=AS_PERSON, n=2)

        assert [choice["message"]["content"] for choice in answer.json["choices"]] == [ADA, ADA]
        assert len(server.requests) == 2
        assert answer.headers["x-gateway-adjusted"] == "n=split, response_format=emulated"
