"""Repairs through the real gateway: what reaches the client, what is booked, and when the upstream is left."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.fakes.gateway import KEY, SERVERS, config, provider, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, delta, event, payloads, stream, text_of, words
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import LAST_CHUNK, Flood, Script, ScriptedServer, answer, chunk, chunked_head

USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
ABORTED = completion() | {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "abort"}]}
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": ""}}


def config_of(server: ScriptedServer, kind: str = "openai_compatible", **target: Any) -> dict[str, Any]:
    """One target of a provider of some *kind*, or with other facts."""
    made = config(server, retries={"attempts": 1})
    made["providers"]["p1"] = provider(server, type=kind)
    made["models"]["m"]["targets"][0] |= target
    return made


async def ask(
    script: Script, kind: str = "openai_compatible", target: dict[str, Any] | None = None, **body: Any
) -> tuple[Answer, dict[str, Any]]:
    async with (
        ScriptedServer(script) as server,
        running_gateway(config_of(server, kind, **(target or {}))) as gateway,
    ):
        got = await gateway.chat(**body)
        row = await gateway.row()
        assert gateway.services.ledger.open_holds == 0
    return got, row


def choices_of(got: Answer) -> list[dict[str, Any]]:
    return [choice for one in payloads(got.body)[:-1] for choice in one["choices"]]


# Stops that the provider could not be given

FIVE = ["one", "two", "three", "four", "END"]


@pytest.mark.parametrize("server", SERVERS)
async def test_at_a_stop_the_client_has_its_answer_and_the_upstream_is_left(server: str) -> None:
    begun = [chunk(one) for one in (ROLE, *words("Hi", " E", "ND", " more"))]
    endless: Script = [chunked_head(), *begun, Flood(chunk(delta(content="la ")), 64 * 2**20)]
    async with (
        ScriptedServer(endless) as upstream,
        running_gateway(config_of(upstream, "groq"), server=server) as gateway,
    ):
        got = await gateway.chat(stream=True, stop=FIVE)
        await upstream.wait_until(lambda it: it.open_connections == 0)
        row = await gateway.row()
        assert gateway.services.ledger.open_holds == 0
    assert text_of(got.body) == "Hi "
    assert [one["finish_reason"] for one in choices_of(got) if one["finish_reason"]] == ["stop"]
    assert payloads(got.body)[-1] == "[DONE]"
    assert json.loads(upstream.requests[0].body)["stop"] == FIVE[:4]
    assert (row["status"], row["error_code"], row["estimated"]) == (200, None, True)
    assert [attempt["status"] for attempt in row["attempts"]] == [200]


async def test_a_whole_answer_is_cut_at_the_stop_and_keeps_its_usage() -> None:
    got, row = await ask([answer(json.dumps(completion("Hi END more")).encode())], "groq", stop=FIVE)
    choice = got.json["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hi ", "stop")
    assert got.headers["x-gateway-adjusted"] == "stop=emulated"
    assert (row["completion_tokens"], row["estimated"]) == (3, False)


# Usage that stands elsewhere


@pytest.mark.parametrize("wanted", [False, True])
async def test_usage_inside_a_private_member_is_booked_and_told_to_those_who_asked(wanted: bool) -> None:
    last = json.loads(STOP[6:]) | {"x_groq": {"id": "req_1", "usage": USAGE}}
    got, row = await ask(
        stream(ROLE, *words("Hi"), event(last), DONE), "groq", stream=True, stream_options={"include_usage": wanted}
    )
    assert (row["prompt_tokens"], row["completion_tokens"], row["estimated"]) == (9, 3, False)
    assert b"x_groq" not in got.body
    told = [one for one in payloads(got.body)[:-1] if "usage" in one]
    assert [(one["choices"], one["usage"]["total_tokens"]) for one in told] == ([([], 12)] if wanted else [])


async def test_a_usage_chunk_is_as_complete_as_the_others() -> None:
    usage = event({"id": "x", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}, "x_groq": {}})
    got, _ = await ask(
        stream(ROLE, *words("Hi"), STOP, usage, DONE), "groq", stream=True, stream_options={"include_usage": True}
    )
    last = payloads(got.body)[-2]
    assert (last["object"], last["usage"]["total_tokens"]) == ("chat.completion.chunk", 12)
    assert isinstance(last["created"], int)
    assert "x_groq" not in last


@pytest.mark.parametrize("wanted", [False, True])
async def test_an_error_beside_the_usage_takes_no_answer_back_that_is_whole(wanted: bool) -> None:
    usage = event({"choices": [], "usage": USAGE, "x_groq": {"id": "req_1", "error": "over capacity"}})
    script = stream(ROLE, *words("Hi"), STOP, usage, DONE)
    got, row = await ask(script, "groq", stream=True, stream_options={"include_usage": wanted})
    assert (text_of(got.body), payloads(got.body)[-1]) == ("Hi", "[DONE]")
    assert (row["error_code"], row["completion_tokens"]) == (None, 3)
    assert (b"usage" in got.body, b"over capacity" in got.body) == (wanted, False)


# Failures that are told in odd ways

FAILURES: list[Any] = [
    pytest.param(event({"object": "error", "message": "busy", "code": 503}), "no_healthy_upstream", id="flat-object"),
    pytest.param(event({"message": "busy", "type": "x", "code": "overloaded"}), "no_healthy_upstream", id="flat"),
    pytest.param(b"event: error\ndata: {\"message\": \"busy\", \"code\": 503}\n\n", "no_healthy_upstream", id="named"),
    pytest.param(b"event: error\ndata: out of memory\n\n", "upstream_error", id="named-and-no-json"),
    pytest.param(event({"error": "busy", "error_type": "overloaded"}), "no_healthy_upstream", id="string"),
    pytest.param(event({"detail": "gone"}), "upstream_error", id="detail"),
    pytest.param(delta(finish="abort"), "upstream_error", id="abort"),
    pytest.param(delta(finish="error"), "upstream_error", id="error"),
]  # fmt: skip


@pytest.mark.parametrize(("failure", "code"), FAILURES)
async def test_a_failure_in_the_stream_is_one_error_event(failure: bytes, code: str) -> None:
    got, row = await ask(stream(ROLE, *words("Hi"), failure, DONE), stream=True)
    *_, last = payloads(got.body)
    assert last["error"]["code"] == code == row["error_code"]
    assert text_of(got.body) == "Hi"
    assert b'"finish_reason": "' not in got.body


@pytest.mark.parametrize(("failure", "code"), FAILURES)
async def test_before_any_content_another_target_answers(failure: bytes, code: str) -> None:
    async with (
        ScriptedServer(stream(ROLE, failure, DONE)) as one,
        ScriptedServer(stream(ROLE, *words("second"), STOP, DONE)) as two,
        running_gateway(config(one, two, retries={"attempts": 1})) as gateway,
    ):
        got = await gateway.chat(stream=True)
    assert text_of(got.body) == "second"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"object": "error", "message": "too long", "code": 400}, 400, "invalid_value"),
        ({"message": "slow down", "type": "x", "code": "rate_limit_exceeded"}, 429, "rate_limit_exceeded"),
        (ABORTED, 502, "upstream_error"),
    ],
)
async def test_a_200_that_tells_of_a_failure_counts_as_one(body: Any, status: int, code: str) -> None:
    got, _ = await ask([answer(json.dumps(body).encode())])
    assert (got.status, got.error["code"]) == (status, code)


async def test_text_that_was_held_is_told_before_the_failure() -> None:
    script: Script = [chunked_head(), *(chunk(one) for one in (ROLE, *words("<think>", "hm</thi"))), LAST_CHUNK]
    got, _ = await ask(script, "vllm", stream=True)
    *chunks, last = payloads(got.body)
    assert "error" in last
    reasoning = [one["choices"][0]["delta"].get("reasoning_content", "") for one in chunks]
    assert "".join(reasoning) == "hm</thi"


async def test_text_that_was_held_bears_the_name_of_the_model_that_was_asked_for() -> None:
    async with (
        ScriptedServer(stream(ROLE, *words("Hi", " EN"))) as server,
        running_gateway({**config_of(server, "groq"), "response_model": "alias"}) as gateway,
    ):
        got = await gateway.chat(stream=True, stop=FIVE)
    *chunks, last = payloads(got.body)
    assert "error" in last
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in chunks) == "Hi EN"
    assert {one["model"] for one in chunks} == {"m"}


# Ends


async def test_a_stream_without_a_finish_reason_is_whole_where_the_facts_say_so() -> None:
    facts = {"overrides": {"finish_reason": {"missing": "stop"}}}
    got, row = await ask(stream(ROLE, *words("Hi"), DONE), target=facts, stream=True)
    assert [one["finish_reason"] for one in choices_of(got)] == [None, None, "stop"]
    assert row["error_code"] is None


async def test_a_reason_on_every_chunk_does_not_end_the_stream() -> None:
    every = [delta("stop", role="assistant", content="a"), delta("stop", content="b")]
    got, _ = await ask(stream(*every), stream=True)
    assert [(one["delta"]["content"], one["finish_reason"]) for one in choices_of(got)] == [("a", None), ("b", "stop")]


async def test_a_stream_in_place_of_a_whole_answer_is_repaired_before_it_is_put_together() -> None:
    pieces = [delta(tool_calls=[CALL]), delta(reasoning="hm"), delta("eos")]
    got, _ = await ask(stream(ROLE, *pieces, DONE), "together")
    choice = got.json["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "get_time", "arguments": "{}"}
    assert (choice["message"]["reasoning_content"], choice["finish_reason"]) == ("hm", "tool_calls")


async def test_a_whole_answer_in_place_of_a_stream_is_repaired_too() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "get_time", "arguments": None}}],
    }
    body = completion() | {"choices": [{"index": 0, "message": message, "finish_reason": "tool_use"}]}
    got, _ = await ask([answer(json.dumps(body).encode())], stream=True)
    pieces = [piece for one in choices_of(got) for piece in one["delta"].get("tool_calls", ())]
    assert pieces[0]["id"].startswith("call_")
    assert "".join(one["function"]["arguments"] for one in pieces) == "{}"
    assert choices_of(got)[-1]["finish_reason"] == "tool_calls"


# A strict client


async def test_the_official_clients_stream_helper_reads_what_it_could_not_read_itself() -> None:
    """openai/openai-python#2806: its helper fails at a call without an index, and joins what is repeated."""
    odd = {"function": {"name": "get_time", "arguments": "{}"}}
    pieces = [delta(role="assistant", content="a"), delta(role="assistant", tool_calls=[odd]), delta("tool_use")]
    bare = [event({"choices": json.loads(one[6:])["choices"]}) for one in pieces]
    async with ScriptedServer(stream(*bare, DONE)) as server, running_gateway(config_of(server)) as gateway:
        client = openai.AsyncOpenAI(api_key=KEY, base_url=f"http://127.0.0.1:{gateway.port}/v1", max_retries=0)
        messages: Any = [{"role": "user", "content": "x"}]
        async with client, client.chat.completions.stream(model="m", messages=messages) as answers:
            whole = await answers.get_final_completion()
    message = whole.choices[0].message
    assert message.tool_calls is not None
    assert (message.role, message.content) == ("assistant", "a")
    assert [(call.function.name, call.function.arguments) for call in message.tool_calls] == [("get_time", "{}")]
    assert message.tool_calls[0].id.startswith("call_")
