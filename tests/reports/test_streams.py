"""Reports about streams: how events are cut, what they lack, and how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gateway.pipeline.relay
from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import (
    DONE,
    ROLE,
    STOP,
    USAGE,
    completion,
    delta,
    event,
    good_stream,
    payloads,
    stream,
    usage_chunk,
    words,
)
from tests.fakes.scripted_server import Hang, Reset, Script, ScriptedServer, Sleep, chunk, chunked_head
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import WEATHER, Heard, heard, hello, in_front_of, saying


def raw(*pieces: bytes) -> Script:
    """A stream that is written in these very pieces."""
    return [chunked_head(), *(chunk(piece) for piece in pieces), b"0\r\n\r\n"]


def with_finish(finish: str) -> Script:
    return stream(ROLE, *words("hello"), delta(finish=finish), DONE)


SMILE = delta(role="assistant", content="\u4f60\u597d\U0001f642").replace(
    json.dumps("\u4f60\u597d\U0001f642").encode(), '"\u4f60\u597d\U0001f642"'.encode()
)
CUT = SMILE.index("\u597d".encode()) + 1
HELLO = delta(role="assistant", content="hello")
MEMBERS = {"object": "chat.completion.chunk", "created": 1, "model": "up-real"}


def numbered(number: int, **fields: Any) -> bytes:
    """An event that claims to be of an answer of its own."""
    choice = {"index": 0, "delta": {"role": "assistant", **fields}, "finish_reason": None}
    return event({"id": f"chat.id.{number}", **MEMBERS, "choices": [choice]})


COMPLETE: list[Any] = [
    pytest.param(with_finish("eos"), "hello", id="openai/openai-dotnet#267"),
    pytest.param(stream(HELLO, STOP), "hello", id="diegosouzapw/OmniRoute#6777"),
    pytest.param(raw(b"event: ping\ndata: \n\n", HELLO, b"data: \n\n", STOP, DONE), "hello",
                 id="caozhiyuan/copilot-api#88"),
    pytest.param(raw(SMILE[:CUT], SMILE[CUT:], STOP, DONE), "\u4f60\u597d\U0001f642", id="api7/aisix#111"),
    pytest.param(raw(HELLO[:20], HELLO[20:-1], HELLO[-1:] + STOP, DONE), "hello", id="graniet/llm#90"),
    pytest.param(stream(event({"id": "c", **MEMBERS, "choices": [], "prompt_filter_results": []}), ROLE,
                        *words("hello"), STOP, DONE), "hello", id="pydantic/pydantic-ai#164"),
    pytest.param(stream(HELLO, event({"id": "c", **MEMBERS, "choices": None}), STOP, DONE), "hello",
                 id="RooCodeInc/Roo-Code#9105"),
    pytest.param(raw(HELLO.replace(b"data: ", b"data:"), STOP.replace(b"data: ", b"data:"), b"data:[DONE]\n\n"),
                 "hello", id="openclaw/openclaw#129905"),
    pytest.param(raw(*(one.replace(b"\n", b"\r\n") for one in (HELLO, STOP, DONE))), "hello",
                 id="headroomlabs-ai/headroom#649"),
    pytest.param(raw(HELLO.replace(b"\n", b"\r\n")[:-1], b"\n" + STOP, DONE), "hello",
                 id="zhu1090093659/deepseek-pp#471 (cut between CR and LF)"),
    pytest.param(stream(delta(content="hel"), delta(role="assistant", content="lo"), STOP, DONE), "hello",
                 id="langwatch/langwatch#6196"),
    pytest.param(stream(delta(role="", content="hel"), delta(role="", content="lo"), STOP, DONE), "hello",
                 id="MiniMax-AI/MiniMax-M2.5#2"),
    pytest.param(stream(numbered(1, content="hel"), numbered(2, content="lo"), STOP, DONE), "hello",
                 id="microsoft/foundry-local#144"),
    pytest.param([saying({"content": "hello"})], "hello", id="a whole answer in place of the stream"),
    pytest.param(raw(*[b"data: : OPENROUTER PROCESSING\n\n"] * 5, HELLO, b"data: : keepalive\n\n", STOP, DONE), "hello",
                 id="mnfst/llm-gateway#2053, anomalyco/opencode#50871"),
    pytest.param(raw(b": OPENROUTER PROCESSING\n\n:\n\n", HELLO, b": ping\n", STOP, DONE), "hello",
                 id="deepnoodle-ai/dive#206"),
    pytest.param(raw(HELLO[:-1], STOP[:-1], DONE[:-1]), "hello", id="events without a blank line between them"),
    pytest.param(raw(HELLO, STOP, b"data: [DONE] \n\n"), "hello", id="[DONE] with a blank"),
    pytest.param(raw(b"data: " + HELLO, b"data: " + STOP, b"data: " + DONE), "hello", id="openclaw/openclaw#97474"),
    pytest.param(raw(HELLO[6:], STOP[6:]), "hello", id="chunks without data:"),
    pytest.param(raw(HELLO, STOP, DONE, DONE, HELLO), "hello", id="diegosouzapw/OmniRoute#4937"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "text"), COMPLETE)
async def test_a_stream_with_a_fault_reads_like_openais(script: Script, text: str) -> None:
    async with in_front_of(script) as field:
        answer = await field.ask(stream=True)

    found = heard(answer)
    assert (found.content, found.finish, found.done) == (text, {0: "stop"}, True)
    assert (found.empty, found.errors, len(found.ids)) == (0, [], 1)
    roles = [one["delta"].get("role") for chunk in payloads(answer.body)[:-1] for one in chunk["choices"]]
    assert roles[0] == "assistant"
    assert set(roles[1:]) <= {None}  # clients that join deltas would make "assistantassistant" of it


REASONING: list[Any] = [
    pytest.param(stream(ROLE, delta(reasoning="let me "), delta(reasoning="think"), *words("hello"), STOP, DONE),
                 id="BerriAI/litellm#20246"),
    pytest.param(stream(ROLE, *words("<thi", "nk>let me ", "think</thi", "nk>hello"), STOP, DONE),
                 id="langchain-ai/langchainjs#9726"),
    pytest.param(stream(ROLE, delta(reasoning_content="let me think", content=None), *words("hello"), STOP, DONE),
                 id="ChatGPTNextWeb/NextChat#6200"),
    pytest.param(stream(ROLE, *words("<think>\n", "let me think", "\n", "\n</think>\n\n", "hello"), STOP, DONE),
                 id="the blanks that templates put around the tags"),
]  # fmt: skip


THINKERS = [
    ("groq", "deepseek-r1-distill-llama-70b"),
    ("groq", "qwen/qwen3-32b"),
    ("cerebras", "qwen-3-235b-a22b-thinking-2507"),
    ("together", "Qwen/Qwen3-235B-A22B-Thinking-2507"),
    ("together", "deepseek-ai/DeepSeek-R1"),
    ("fireworks", "accounts/fireworks/models/deepseek-r1"),
    ("fireworks", "accounts/fireworks/models/qwen3-235b-a22b"),
]


@pytest.mark.parametrize(("provider", "model"), THINKERS)
async def test_the_tags_of_models_that_think_are_known_at_hosted_providers_too(provider: str, model: str) -> None:
    """AIProxyTeam/AIProxySwift#101, egoist/chatwise-releases#979"""
    text = "<think>\nlet me think\n</think>\n\nhello"
    async with in_front_of([saying({"content": text})], provider, model) as field:
        message = (await field.ask()).json["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("let me think", "hello")

    async with in_front_of(stream(ROLE, *words(*text), STOP, DONE), provider, model) as field:
        found = heard(await field.ask(stream=True))
    assert (found.reasoning, found.content) == ("let me think", "hello")


@pytest.mark.parametrize("script", REASONING)
async def test_reasoning_arrives_under_one_name(script: Script) -> None:
    async with in_front_of(script) as field:
        found = heard(await field.ask(stream=True))

    assert (found.reasoning, found.content) == ("let me think", "hello")


FAILING: list[Any] = [
    pytest.param(event({"error": {"message": "CUDA out of memory", "type": "internal_error", "code": 500}}),
                 "CUDA out of memory", id="mozilla-ai/any-llm#847"),
    pytest.param(event({"error": {"message": "parameters did not match schema", "type": "invalid_request_error",
                                  "code": "tool_use_failed"}, "status_code": 400}),
                 "did not match schema", id="BerriAI/litellm#40566"),
    pytest.param(event({"error": {"message": "RESOURCE_EXHAUSTED", "type": "rate_limit", "code": 429}}),
                 "RESOURCE_EXHAUSTED", id="BerriAI/litellm#26015"),
    pytest.param(event({"error": {"message": "Compute error."}, "message": "Compute error."}), "Compute error",
                 id="zendev-sh/goai#110"),
    pytest.param(event({"object": "error", "message": "engine died", "type": "InternalServerError", "code": 500}),
                 "engine died", id="vllm-project/vllm#6174 in a stream"),
    pytest.param(b'error: {"code":500,"message":"slot unavailable","type":"server_error"}\n\n', "slot unavailable",
                 id="ggml-org/llama.cpp's error field"),
    pytest.param(b'{\n  "error": {\n    "code": 429,\n    "message": "Resource exhausted",\n'
                 b'    "status": "RESOURCE_EXHAUSTED"\n  }\n}\n', "Resource exhausted", id="maximhq/bifrost#5262"),
    pytest.param(b'[{"error": {"code": 503, "message": "overloaded"}}]\n', "overloaded",
                 id="maximhq/bifrost#5262 (in a list)"),
    pytest.param(b'data: {"id": "c", "choices": [{"delta": \ndata: {"error": {"message": "stream_read_error"}}\n\n',
                 "stream_read_error", id="Wei-Shaw/sub2api#1471"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "told"), FAILING)
async def test_an_error_in_mid_stream_is_told_as_one(fault: bytes, told: str) -> None:
    async with in_front_of(stream(HELLO, fault)) as field:
        answer = await field.ask(stream=True, tools=[WEATHER])

        found = heard(answer)
        assert found.content == "hello"
        assert told in found.errors[0]["message"]
        assert isinstance(found.errors[0]["code"], str)
        assert found.finish == {}
        again = await field.ask(stream=True)  # the gateway is none the worse for it
        assert again.status == 200


async def test_a_connection_that_drops_in_mid_stream_is_told() -> None:
    """preloop/preloop#117"""
    async with in_front_of([chunked_head(), chunk(HELLO), Sleep(0.02), Reset()]) as field:
        found = heard(await field.ask(stream=True))

    assert found.content == "hello"
    assert found.errors
    assert found.finish == {}


async def test_choices_of_one_stream_keep_their_numbers() -> None:
    """majiayu000/litellm-rs#687"""

    def of(index: int, text: str) -> bytes:
        return delta(index=index, content=text)

    ends = (delta(finish="stop", index=0), delta(finish="stop", index=1))
    async with in_front_of(stream(of(0, "Az"), of(1, "Bl"), of(0, "ure"), of(1, "ue"), *ends, DONE)) as field:
        answer = await field.ask(stream=True, n=2)

    assert (heard(answer, 0).content, heard(answer, 1).content) == ("Azure", "Blue")


async def test_choices_that_are_streams_of_their_own_have_the_same_faults() -> None:
    """mnfst/llm-gateway#2053, maximhq/bifrost#5262, through a provider that has one choice alone"""
    odd = raw(b"data: : keepalive\n\n", HELLO[:-1], STOP[:-1], DONE[:-1])
    async with in_front_of(odd, "groq") as field:
        answer = await field.ask(stream=True, n=2)
    assert (heard(answer, 0).content, heard(answer, 1).content, heard(answer).done) == ("hello", "hello", True)

    async with in_front_of(raw(HELLO, b'{"error": {"message": "overloaded", "code": 503}}\n'), "groq") as field:
        answer = await field.ask(stream=True, n=2)
    assert "overloaded" in heard(answer).errors[0]["message"]


async def test_chunks_go_out_as_they_come_and_proxies_are_told_not_to_collect_them() -> None:
    """LostRuins/koboldcpp#1168"""
    async with in_front_of([chunked_head(), chunk(HELLO), Sleep(0.05), chunk(STOP + DONE), b"0\r\n\r\n"]) as field:
        answer = await field.ask(stream=True)

    assert answer.headers["x-accel-buffering"] == "no"
    assert "no-cache" in answer.headers["cache-control"]
    assert b"hello" in answer.chunks[0]
    assert len(answer.chunks) > 1


async def test_usage_comes_once_and_only_to_who_asks() -> None:
    """Arthur-Ficial/apfel#100, pixeltable/pixeltable#1234"""
    script = stream(ROLE, *words("hello"), delta(finish="stop"), usage_chunk(), usage_chunk(), DONE)
    async with in_front_of(script, "fireworks") as field:
        silent: Heard = heard(await field.ask(stream=True))
        asked = heard(await field.ask(stream=True, stream_options={"include_usage": True}))

    assert (silent.usages, silent.empty) == ([], 0)
    assert asked.usages == [USAGE]


async def test_usage_is_asked_for_and_booked_though_the_client_does_not_ask() -> None:
    """doublewordai/control-layer#701, router-for-me/CLIProxyAPI#2111: such requests were free."""
    async with in_front_of(good_stream("hello")) as field:
        await field.ask(stream=True)

        assert field.sent[0]["stream_options"] == {"include_usage": True}
        row = await field.gateway.row()
    assert (row["prompt_tokens"], row["completion_tokens"]) == (9, 3)


async def test_a_silent_upstream_is_bridged_between_events_never_inside_one() -> None:
    """james-6-23/codex2api#696"""
    script: Script = [
        chunked_head(),
        chunk(HELLO[:40]),
        Sleep(0.1),
        chunk(HELLO[40:]),
        chunk(STOP + DONE),
        b"0\r\n\r\n",
    ]
    async with in_front_of(script) as field:
        answer = await field.ask(stream=True)

    assert heard(answer).content == "hello"
    assert all(block.startswith((b"data: ", b":")) for block in answer.body.split(b"\n\n") if block)


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_begins_with_what_the_client_asked_for(streamed: bool) -> None:
    """BerriAI/litellm#361: nothing of the provider's own stands in between."""
    async with in_front_of(hello, "groq") as field:
        answer = await field.ask(stream=streamed)

    assert answer.headers["content-type"].startswith("text/event-stream" if streamed else "application/json")
    assert b"x_groq" not in answer.body


MARKS = ["text/plain; charset=utf-8", "application/json", "application/octet-stream", ""]


@pytest.mark.parametrize("content_type", MARKS)
async def test_a_stream_is_one_whatever_its_content_type(content_type: str) -> None:
    """xiaoliu10/claude-code-router-next#45, vllm-project/vllm-ascend#6985, elastic/kibana#275723"""
    head = chunked_head(content_type=content_type)
    script: Script = [head, chunk(b"\n: ping\n\n"), chunk(HELLO[:4]), chunk(HELLO[4:]), Sleep(0.05)]
    async with in_front_of([*script, chunk(STOP + DONE), b"0\r\n\r\n"]) as field:
        answer = await field.ask(stream=True)

        assert (heard(answer).content, heard(answer).done) == ("hello", True)
        assert b"[DONE]" not in answer.chunks[0]  # it did not wait for the end
        whole = await field.ask()
    assert whole.json["choices"][0]["message"]["content"] == "hello"


async def test_done_is_an_end_without_a_reason_where_the_provider_tells_none() -> None:
    """diegosouzapw/OmniRoute#7800, ai-dynamo/dynamo#10514; ollama/ollama#4357"""
    async with in_front_of(stream(HELLO, DONE), "ollama") as field:
        found = heard(await field.ask(stream=True))
    assert (found.content, found.finish, found.done) == ("hello", {0: "stop"}, True)


ENDLESS: list[Any] = [
    pytest.param(stream(HELLO), "ollama", id="nothing"),
    pytest.param(stream(HELLO, usage_chunk()), "ollama", id="usage"),
    pytest.param(stream(HELLO, DONE), "vllm", id="done"),
    pytest.param(stream(HELLO, usage_chunk(), DONE), "openai_compatible", id="usage and done"),
]


@pytest.mark.parametrize(("script", "provider"), ENDLESS)
async def test_a_stream_without_a_reason_broke_off(script: Script, provider: str) -> None:
    """No reason is made up (earendil-works/pi#7441 is the other side of it)."""
    async with in_front_of(script, provider) as field:
        found = heard(await field.ask(stream=True))

    assert found.errors
    assert (found.finish, found.done) == ({}, False)


ENDED: list[Any] = [
    pytest.param([HELLO, STOP], id="reason alone"),
    pytest.param([delta(role="assistant", content="hello", finish="stop")], id="reason with the last word"),
    pytest.param([HELLO, STOP, usage_chunk()], id="usage"),
]


@pytest.mark.parametrize("events", ENDED)
async def test_an_answer_that_has_ended_does_not_wait_for_who_keeps_the_connection(
    events: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S11 of the failure drill, without the end of the body"""
    monkeypatch.setattr(gateway.pipeline.relay, "_END_SECONDS", 0.05)
    async with in_front_of([*stream(*events, end=False), Hang()]) as field:
        answer = await field.ask(stream=True, timeout=5)

    found = heard(answer)
    assert (found.content, found.finish, found.done, found.errors) == ("hello", {0: "stop"}, True, [])


NOBODY: dict[str, Any] = {"name": "", "arguments": ""}


def picture(size: int, **members: Any) -> dict[str, Any]:
    """A delta with one picture of *size* bytes."""
    url = "data:image/png;base64," + "A" * size
    return {"content": "", "images": [{"type": "image_url", "image_url": {"url": url}}], **members}


async def test_a_picture_of_some_size_arrives() -> None:
    """open-webui/open-webui#20634, MiXaiLL76/auto_ai_router#190"""
    script = stream(ROLE, delta(**picture(1_500_000)), delta(**picture(10)), STOP, usage_chunk(), DONE)
    async with in_front_of(script) as field:
        answer = await field.ask(stream=True)
        whole = await field.ask()

    chunks = payloads(answer.body)
    assert chunks.pop() == "[DONE]"
    drawn = [picture for chunk in chunks for one in chunk["choices"] for picture in one["delta"].get("images", ())]
    assert [len(one["image_url"]["url"]) for one in drawn] == [1_500_022, 32]
    assert heard(answer).finish == {0: "stop"}
    assert len(whole.json["choices"][0]["message"]["images"]) == 2


async def test_a_picture_alone_is_an_answer() -> None:
    async with (
        ScriptedServer(stream(ROLE, delta(**picture(300_000)), STOP, DONE)) as first,
        ScriptedServer(good_stream("from backup")) as second,
        running_gateway(config(first, second)) as gateway,
    ):
        answer = await gateway.chat(stream=True)

        assert (len(first.requests), len(second.requests)) == (1, 0)
    assert b"data:image/png" in answer.body


STUBS: list[Any] = [
    pytest.param({"function_call": NOBODY}, id="CangShui/workbuddy-gateway#3"),
    pytest.param({"tool_calls": [{"index": 0, "id": "", "type": "function", "function": NOBODY}]}, id="as a tool"),
    pytest.param({"tool_calls": [{"index": 0, "id": None, "type": None, "function": None}]}, id="nulls"),
]


@pytest.mark.parametrize("offered", [{"tools": [WEATHER]}, {}])
@pytest.mark.parametrize("stub", STUBS)
async def test_a_call_without_name_and_arguments_is_none(stub: dict[str, Any], offered: dict[str, Any]) -> None:
    async with in_front_of(stream(HELLO, delta(finish="stop", **stub), DONE)) as field:
        answer = await field.ask(stream=True, **offered)
    assert (heard(answer).content, heard(answer).finish) == ("hello", {0: "stop"})
    assert b"function_call" not in answer.body
    assert b"tool_calls" not in answer.body

    async with in_front_of([saying({"content": "hello", **stub})]) as field:
        choice = (await field.ask(**offered)).json["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", "hello")
    assert not choice["message"].get("function_call")
    assert not choice["message"].get("tool_calls")


@pytest.mark.parametrize("last", [{"text": None}, {}])
async def test_the_last_piece_of_a_text_completion_has_a_text(last: dict[str, Any]) -> None:
    """Typed clients read ``text`` as a string."""

    def piece(**members: Any) -> bytes:
        choice = {"index": 0, "finish_reason": None, "logprobs": None, **members}
        return event({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]})

    async with in_front_of(stream(piece(text="hello"), piece(finish_reason="stop", **last), DONE)) as field:
        answer = await field.gateway.post("/v1/completions", {"model": "m", "prompt": "hi", "stream": True})

    texts = [choice["text"] for chunk in payloads(answer.body)[:-1] for choice in chunk["choices"]]
    assert texts == ["hello", ""]


async def test_done_alone_is_no_answer() -> None:
    async with in_front_of(stream(ROLE, DONE), "ollama") as field:
        answer = await field.ask(stream=True)

    assert answer.status == 502


async def test_a_byte_order_mark_is_no_part_of_an_answer() -> None:
    """Go and .NET proxies put one before the body."""
    async with in_front_of([wire_answer(b"\xef\xbb\xbf" + json.dumps(completion("hello")).encode())]) as field:
        answer = await field.ask()
        streamed = await field.ask(stream=True)

    assert answer.json["choices"][0]["message"]["content"] == heard(streamed).content == "hello"


async def test_a_page_is_no_stream() -> None:
    """Significant-Gravitas/AutoGPT#341, for streams that say they are something else than a page"""
    async with in_front_of([wire_answer(b"<html>Sign in</html>", content_type="text/plain")]) as field:
        answer = await field.ask(stream=True)

    assert answer.status == 502
    assert b"Sign in" not in answer.body


async def test_a_stream_where_a_whole_answer_was_asked_for_is_put_together() -> None:
    """vllm-project/vllm and proxies before it: `stream: false` that is not heeded."""
    async with in_front_of(raw(b"data: : keepalive\n\n", ROLE, *words("hel", "lo"), STOP, DONE)) as field:
        answer = await field.ask()

    assert answer.json["choices"][0]["message"]["content"] == "hello"
    assert answer.json["object"] == "chat.completion"


async def test_a_whole_answer_without_a_reason_to_end_gets_one() -> None:
    """JamePeng/llama-cpp-python#113 and Ollama's null."""
    said = completion()
    said["choices"][0]["finish_reason"] = None
    async with in_front_of([wire_answer(json.dumps(said).encode())]) as field:
        answer = await field.ask()

    assert answer.json["choices"][0]["finish_reason"] == "stop"
