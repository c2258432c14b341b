"""Schemas on providers that lack them, beside tools, or in streams."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import CHAT, HELLO, chat_body, request, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, payloads, refusal, stream, text_of, usage_chunk, words
from tests.fakes.scripted_server import Hang, Script, ScriptedServer, Sleep
from tests.fakes.shapes import ADA, AS_PERSON, LOOK, called, calls_of, in_turn, lacking, said, sent, text_of_whole

JSON_SCHEMA, JSON_OBJECT = "response_format.json_schema", "response_format.json_object"
NO_SCHEMA = {"params": {JSON_SCHEMA: {"support": "rejected", "patch": "emulate_schema"}}}
NOTHING = {
    "params": {
        JSON_SCHEMA: {"support": "ignored", "patch": "emulate_schema"},
        JSON_OBJECT: {"support": "ignored", "patch": "emulate_schema"},
    }
}
UNSURE = {"params": {JSON_SCHEMA: {"support": "native", "patch": "validate_schema"}}}
EITHER = {"conflicts": [{"when": ["tools", "response_format"], "result": 400, "patch": "two_phase"}]}
NOT_STREAMED = {"conflicts": [{"when": ["stream", "response_format"], "result": 400, "patch": "fake_stream"}]}


# A schema where there is none


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


# Tools and a format


async def test_a_call_in_the_first_phase_is_the_answer() -> None:
    async with ScriptedServer([called()]) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)

        assert calls_of(answer) == [("look", {"place": "here"})]
        (body,) = sent(server)
        assert "response_format" not in body
        assert answer.headers["x-gateway-adjusted"] == "response_format=split"


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_text_in_the_first_phase_is_followed_by_the_format_without_tools(streamed: bool) -> None:
    second: bytes | Script = stream(ROLE, *words(ADA), STOP, usage_chunk(), DONE) if streamed else said(ADA)
    script = in_turn(said("I know her."), second)
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(
            tools=[LOOK], response_format=AS_PERSON, stream=streamed, tool_choice="auto", parallel_tool_calls=False
        )
        row = await gateway.row()

        assert (text_of(answer.body) if streamed else text_of_whole(answer)) == ADA
        first, further = sent(server)
        assert "response_format" not in first
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & further.keys()
        assert further["response_format"] == AS_PERSON
        assert further.get("stream", False) is streamed
    assert (row["prompt_tokens"], row["completion_tokens"]) == (18, 6)


async def test_the_usage_at_the_end_of_a_stream_is_that_of_both_phases() -> None:
    script = in_turn(said("I know her."), stream(ROLE, *words(ADA), STOP, usage_chunk(), DONE))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(
            tools=[LOOK], response_format=AS_PERSON, stream=True, stream_options={"include_usage": True}
        )

    assert payloads(answer.body)[-2]["usage"] == {"prompt_tokens": 18, "completion_tokens": 6, "total_tokens": 24}


async def test_a_first_phase_that_conforms_by_itself_is_enough() -> None:
    async with ScriptedServer([said(ADA)]) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)

        assert text_of_whole(answer) == ADA
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("choice", "absent"),
    [
        ("required", "response_format"),
        ({"type": "function", "function": {"name": "look"}}, "response_format"),
        ("none", "tools"),
    ],
)
async def test_one_phase_is_enough_where_the_choice_leaves_nothing_open(choice: Any, absent: str) -> None:
    script = in_turn(said(ADA) if absent == "tools" else called())
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON, tool_choice=choice)

        assert answer.status == 200
        (body,) = sent(server)
        assert absent not in body


async def test_a_refusal_of_the_second_phase_is_that_of_the_request() -> None:
    script = in_turn(said("I know her."), refusal(429, "slow down"))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        answer = await gateway.chat(tools=[LOOK], response_format=AS_PERSON)
        row = await gateway.row()

    assert answer.status == 429
    assert (row["prompt_tokens"], row["completion_tokens"]) == (9, 3)  # the first phase was answered


async def test_a_client_that_leaves_between_the_phases_is_noticed() -> None:
    script = in_turn(said("I know her."), [Hang()])
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=EITHER)) as gateway:
        client = await gateway.connect()
        await client.send(request(CHAT, chat_body(tools=[LOOK], response_format=AS_PERSON, stream=True)))
        await server.wait_until(lambda server: len(server.requests) == 2)
        await client.close()

        await server.wait_until(lambda server: server.open_connections <= 1, seconds=0.25)
        assert (await gateway.row())["status"] == 499


# Streams that are none


async def test_what_cannot_be_streamed_is_asked_whole_and_told_as_a_stream() -> None:
    async with (
        ScriptedServer([said(ADA)]) as server,
        running_gateway(lacking(server, overrides=NOT_STREAMED)) as gateway,
    ):
        answer = await gateway.chat(response_format=AS_PERSON, stream=True)

        assert text_of(answer.body) == ADA
        assert payloads(answer.body)[-1] == "[DONE]"
        assert "stream" not in sent(server)[0]
        assert "stream_options" not in sent(server)[0]
        assert answer.headers["x-gateway-adjusted"] == "stream=emulated"


async def test_the_client_hears_comments_while_it_waits_for_what_is_not_streamed() -> None:
    async with ScriptedServer([Sleep(0.15), said(ADA)]) as server:
        settings = lacking(server, overrides=NOT_STREAMED)
        async with running_gateway({**settings, "server": {"stream_keepalive": "50ms"}}) as gateway:
            answer = await gateway.chat(response_format=AS_PERSON, stream=True)

    assert answer.body.startswith(b": keep-alive\n\n")
    assert text_of(answer.body) == ADA


async def test_a_stream_without_a_format_stays_one() -> None:
    script = in_turn(stream(ROLE, *words("Hello"), STOP, usage_chunk(), DONE))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=NOT_STREAMED)) as gateway:
        answer = await gateway.chat(stream=True)

        assert text_of(answer.body) == "Hello"
        assert sent(server)[0]["stream"] is True
        assert "x-gateway-adjusted" not in answer.headers
