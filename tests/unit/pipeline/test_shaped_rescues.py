"""Requests that a provider has refused, and that are answered all the same."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.shapes.base import Answer, Continue
from adapters.shapes.salvage import SalvageCall
from adapters.spec import ErrorCaseSpec
from adapters.types import Body, FailureKind, Operation
from tests.fakes.gateway import running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, event, payloads, refusal, stream, text_of
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.fakes.shapes import ADA, AS_PERSON, LOOK, WAIT, called, calls_of, in_turn, lacking, said, sent

STREAMED_PERHAPS = {
    "conflicts": [{"when": ["stream", "response_format"], "result": 400, "patch": "fake_stream", "only_after": 400}]
}


def streams_no_json(request: RecordedRequest) -> Script:
    body = json.loads(request.body)
    if body.get("stream") and "response_format" in body:
        return [refusal(400, "streaming with response_format is not supported")]
    return stream(ROLE, delta(content="Hello"), STOP, DONE) if body.get("stream") else [said(ADA)]


async def test_what_may_be_taken_is_tried_and_remembered_once_it_was_refused() -> None:
    async with (
        ScriptedServer(streams_no_json) as server,
        running_gateway(lacking(server, overrides=STREAMED_PERHAPS)) as gateway,
    ):
        first = await gateway.chat(response_format=AS_PERSON, stream=True)
        second = await gateway.chat(response_format=AS_PERSON, stream=True)

        assert [text_of(first.body), text_of(second.body)] == [ADA, ADA]
        assert [body.get("stream") for body in sent(server)] == [True, None, None]
        assert first.headers["x-gateway-adjusted"] == second.headers["x-gateway-adjusted"] == "stream=emulated"


async def test_a_refusal_for_another_reason_is_passed_on_and_changes_nothing() -> None:
    async with (
        ScriptedServer([refusal(400, "bad schema")]) as server,
        running_gateway(lacking(server, overrides=STREAMED_PERHAPS)) as gateway,
    ):
        answers = [await gateway.chat(response_format=AS_PERSON, stream=True) for _ in range(2)]

        assert [answer.status for answer in answers] == [400, 400]
        assert "bad schema" in answers[0].error["message"]
        assert [body.get("stream") for body in sent(server)] == [True, None, True, None]


TOOL_USE_FAILED = {
    "errors": {
        "cases": [
            {"case": "tool_arguments_invalid", "status": 400, "code": "tool_use_failed", "patch": "salvage_tool_call"}
        ]
    }
}
READABLE = '<function=look>{"place": "here"}</function>'
UNREADABLE = "I would rather look around."


def failed(generation: str, **members: str) -> bytes:
    return refusal(400, "Failed to call a function.", code="tool_use_failed", failed_generation=generation, **members)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_call_that_the_provider_could_not_read_is_read_here(streamed: bool) -> None:
    async with (
        ScriptedServer([failed(READABLE)]) as server,
        running_gateway(lacking(server, overrides=TOOL_USE_FAILED)) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK], stream=streamed)
        row = await gateway.row()

        assert answer.status == 200
        assert len(server.requests) == 1
    if streamed:
        (call,) = payloads(answer.body)[0]["choices"][0]["delta"]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("look", {"place": "here"})
        assert payloads(answer.body)[-1] == "[DONE]"
    else:
        assert calls_of(answer) == [("look", {"place": "here"})]
        assert answer.json["choices"][0]["finish_reason"] == "tool_calls"
        assert answer.json["model"] == "up1"
    assert answer.headers["x-gateway-adjusted"] == "tools=emulated"
    assert (row["prompt_tokens"], row["cost_nusd"]) == (0, None)


async def test_what_is_no_call_is_asked_for_once_more() -> None:
    script = in_turn(failed(UNREADABLE), called())
    async with (
        ScriptedServer(script) as server,
        running_gateway(lacking(server, overrides=TOOL_USE_FAILED)) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK])

        assert calls_of(answer) == [("look", {"place": "here"})]
        assert len(server.requests) == 2


async def test_a_second_failure_is_the_answer() -> None:
    async with (
        ScriptedServer([failed(UNREADABLE)]) as server,
        running_gateway(lacking(server, overrides=TOOL_USE_FAILED)) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK])

        assert answer.status == 502
        assert UNREADABLE not in answer.body.decode()
        assert len(server.requests) == 2


async def test_a_call_that_failed_in_the_stream_is_read_too() -> None:
    error = {
        "message": "Failed to call a function.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": READABLE,
        "status_code": 400,
    }
    async with (
        ScriptedServer(stream(ROLE, event({"error": error}))) as server,
        running_gateway(lacking(server, overrides=TOOL_USE_FAILED)) as gateway,
    ):
        answer = await gateway.chat(tools=[LOOK], stream=True)

    assert answer.status == 200
    assert b'"tool_calls"' in answer.body
    assert payloads(answer.body)[-1] == "[DONE]"


async def test_one_of_several_choices_is_saved_alone() -> None:
    facts = {**TOOL_USE_FAILED, "params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}
    script = in_turn(called(), failed(READABLE))
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=facts)) as gateway:
        answer = await gateway.chat(tools=[LOOK], n=2)
        row = await gateway.row()

    assert [len(choice["message"]["tool_calls"]) for choice in answer.json["choices"]] == [1, 1]
    assert row["prompt_tokens"] == 9


TOOLS_BY_MODEL = {
    "errors": {
        "cases": [
            {"case": "no_tools", "status": 400, "match": ["does not support tools"], "patch": "emulate_tools"},
        ]
    }
}
RESULT = [{"role": "user", "content": "Look."}, {"role": "tool", "tool_call_id": "a", "content": "a lake"}]


def has_no_tools(request: RecordedRequest) -> Script:
    body = json.loads(request.body)
    if "tools" in body:
        return [refusal(400, "library/small:latest does not support tools")]
    return [said(json.dumps({"tool_calls": [{"name": "look", "arguments": {"place": "here"}}]}))]


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_model_that_turns_out_to_have_no_tools_has_them_emulated_from_then_on(streamed: bool) -> None:
    async with (
        ScriptedServer(has_no_tools) as server,
        running_gateway(lacking(server, overrides=TOOLS_BY_MODEL)) as gateway,
    ):
        answers = [await gateway.chat(tools=[LOOK], messages=RESULT, stream=streamed) for _ in range(2)]

        assert [answer.status for answer in answers] == [200, 200], answers[0].body
        assert all(b'"tool_calls"' in answer.body for answer in answers)
        assert ["tools" in body for body in sent(server)] == [True, False, False]
        assert sent(server)[1]["messages"][-1] == {"role": "user", "content": "Result of the function: a lake"}
        assert "tools=emulated" in answers[0].headers["x-gateway-adjusted"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_requests_that_were_on_their_way_before_it_was_known_are_rescued_too(streamed: bool) -> None:
    facts = {
        **TOOLS_BY_MODEL,
        **STREAMED_PERHAPS,
        "params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}},
    }
    asked: list[dict[str, Any]] = [{"tools": [LOOK]}, {"response_format": AS_PERSON}]

    def script(request: RecordedRequest) -> Script:
        return (
            has_no_tools(request) if b'"tools' in request.body or b"look" in request.body else streams_no_json(request)
        )

    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=facts)) as gateway:
        answers = [await gateway.chat(**one, n=3, stream=streamed) for one in asked]

    assert [answer.status for answer in answers] == [200, 200], [answer.body for answer in answers]
    assert all(answer.body.count(b'"finish_reason":"') == 3 for answer in answers)


async def test_a_model_without_tools_is_no_reason_to_emulate_them_against_the_clients_wish() -> None:
    async with (
        ScriptedServer(has_no_tools) as server,
        running_gateway(lacking(server, overrides=TOOLS_BY_MODEL)) as gateway,
    ):
        answer = await gateway.chat("x-gateway-unsupported: reject", tools=[LOOK])

        assert (answer.status, answer.error["code"]) == (400, "unsupported_parameter")
        assert len(server.requests) == 1


async def test_another_refusal_of_tools_is_passed_on() -> None:
    async with (
        ScriptedServer([refusal(400, "tools[0]: no such type")]) as server,
        running_gateway(lacking(server, overrides=TOOLS_BY_MODEL)) as gateway,
    ):
        answers = [await gateway.chat(tools=[LOOK]) for _ in range(2)]

        assert [answer.status for answer in answers] == [400, 400]
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("written", "calls"),
    [
        ('{"name": "look", "arguments": {"place": "a"}}', 1),
        ('{"name": "look", "parameters": {"place": "a"}}', 1),
        ('[{"name": "look", "arguments": {"place": "a"}}, {"name": "wait", "arguments": {}}]', 2),
        ('{"tool_calls": [{"type": "function", "function": {"name": "look", "arguments": {"place": "a"}}}]}', 1),
        ('<tool_call>\n{"name": "look", "arguments": {"place": "a"}}\n</tool_call>', 1),
        ('<tool-use>{"name": "look", "arguments": {"place": "a"}}</tool-use>', 1),
        ('<function=look{"place": "a"}</function>', 1),
        ('<function=look={"place": "a"}</function>', 1),
        ('<function=look>{"place": "a"}</function><function=wait>{}</function>', 2),
        ('```json\n{"name": "look", "arguments": {"place": "a"}}\n```', 1),
        ('{"name": "run", "arguments": {"place": "a"}}', 0),
        ('{"name": "look", "arguments": {"spot": "a"}}', 0),
        ('{"name": "look", "arguments": {"place": ', 0),
        ("", 0),
    ],
)
async def test_calls_are_read_in_the_ways_models_write_them(written: str, calls: int) -> None:
    body = {
        name: msgspec.Raw(json.dumps(value).encode()) for name, value in {"model": "m", "tools": [LOOK, WAIT]}.items()
    }
    failure = ProviderError(
        FailureKind.BAD_REQUEST, "no", status=400, code="tool_use_failed", failed_generation=written
    )
    case = ErrorCaseSpec(case="x", status=(400,), code="tool_use_failed", src=("x",))
    shape = SalvageCall([case]).rescued(Draft(body, Operation.CHAT, False), failure)
    assert shape is not None
    outcome = await shape.answer(body, Unasked())

    assert isinstance(outcome, Continue) == (calls == 0)
    if isinstance(outcome, dict):
        assert len(outcome["choices"][0]["message"]["tool_calls"]) == calls


class Unasked:
    """A caller that must not be used."""

    async def whole(self, body: Body) -> Answer:
        raise AssertionError(body)

    async def fetch(self, url: str, most_bytes: int) -> tuple[str, bytes]:
        raise AssertionError(url)
