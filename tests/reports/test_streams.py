"""Reports about streams: how their events are cut, what stands around them, and whether it is one at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
from tests.fakes.scripted_server import Script, Sleep, chunk, chunked_head
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import HELLO, Heard, heard, hello, in_front_of, saying


def with_finish(finish: str) -> Script:
    return stream(ROLE, *words("hello"), delta(finish=finish), DONE)


SMILE = delta(role="assistant", content="\u4f60\u597d\U0001f642").replace(
    json.dumps("\u4f60\u597d\U0001f642").encode(), '"\u4f60\u597d\U0001f642"'.encode()
)
CUT = SMILE.index("\u597d".encode()) + 1
MEMBERS = {"object": "chat.completion.chunk", "created": 1, "model": "up-real"}


def numbered(number: int, **fields: Any) -> bytes:
    """An event that claims to be of an answer of its own."""
    choice = {"index": 0, "delta": {"role": "assistant", **fields}, "finish_reason": None}
    return event({"id": f"chat.id.{number}", **MEMBERS, "choices": [choice]})


COMPLETE: list[Any] = [
    pytest.param(with_finish("eos"), "hello", id="openai/openai-dotnet#267"),
    pytest.param(stream(HELLO, STOP), "hello", id="diegosouzapw/OmniRoute#6777"),
    pytest.param(stream(b"event: ping\ndata: \n\n", HELLO, b"data: \n\n", STOP, DONE), "hello",
                 id="caozhiyuan/copilot-api#88"),
    pytest.param(stream(SMILE[:CUT], SMILE[CUT:], STOP, DONE), "\u4f60\u597d\U0001f642", id="api7/aisix#111"),
    pytest.param(stream(HELLO[:20], HELLO[20:-1], HELLO[-1:] + STOP, DONE), "hello", id="graniet/llm#90"),
    pytest.param(stream(event({"id": "c", **MEMBERS, "choices": [], "prompt_filter_results": []}), ROLE,
                        *words("hello"), STOP, DONE), "hello", id="pydantic/pydantic-ai#164"),
    pytest.param(stream(HELLO, event({"id": "c", **MEMBERS, "choices": None}), STOP, DONE), "hello",
                 id="RooCodeInc/Roo-Code#9105"),
    pytest.param(stream(HELLO.replace(b"data: ", b"data:"), STOP.replace(b"data: ", b"data:"), b"data:[DONE]\n\n"),
                 "hello", id="openclaw/openclaw#129905"),
    pytest.param(stream(*(one.replace(b"\n", b"\r\n") for one in (HELLO, STOP, DONE))), "hello",
                 id="headroomlabs-ai/headroom#649"),
    pytest.param(stream(HELLO.replace(b"\n", b"\r\n")[:-1], b"\n" + STOP, DONE), "hello",
                 id="zhu1090093659/deepseek-pp#471 (cut between CR and LF)"),
    pytest.param(stream(delta(content="hel"), delta(role="assistant", content="lo"), STOP, DONE), "hello",
                 id="langwatch/langwatch#6196"),
    pytest.param(stream(delta(role="", content="hel"), delta(role="", content="lo"), STOP, DONE), "hello",
                 id="MiniMax-AI/MiniMax-M2.5#2"),
    pytest.param(stream(numbered(1, content="hel"), numbered(2, content="lo"), STOP, DONE), "hello",
                 id="microsoft/foundry-local#144"),
    pytest.param([saying({"content": "hello"})], "hello", id="a whole answer in place of the stream"),
    pytest.param(stream(*[b"data: : OPENROUTER PROCESSING\n\n"] * 5, HELLO, b"data: : keepalive\n\n", STOP, DONE),
                 "hello", id="mnfst/llm-gateway#2053, anomalyco/opencode#50871"),
    pytest.param(stream(b": OPENROUTER PROCESSING\n\n:\n\n", HELLO, b": ping\n", STOP, DONE), "hello",
                 id="deepnoodle-ai/dive#206"),
    pytest.param(stream(HELLO[:-1], STOP[:-1], DONE[:-1]), "hello", id="events without a blank line between them"),
    pytest.param(stream(HELLO, STOP, b"data: [DONE] \n\n"), "hello", id="[DONE] with a blank"),
    pytest.param(stream(b"data: " + HELLO, b"data: " + STOP, b"data: " + DONE), "hello", id="openclaw/openclaw#97474"),
    pytest.param(stream(HELLO[6:], STOP[6:]), "hello", id="chunks without data:"),
    pytest.param(stream(HELLO, STOP, DONE, DONE, HELLO), "hello", id="diegosouzapw/OmniRoute#4937"),
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
    odd = stream(b"data: : keepalive\n\n", HELLO[:-1], STOP[:-1], DONE[:-1])
    async with in_front_of(odd, "groq") as field:
        answer = await field.ask(stream=True, n=2)
    assert (heard(answer, 0).content, heard(answer, 1).content, heard(answer).done) == ("hello", "hello", True)

    async with in_front_of(stream(HELLO, b'{"error": {"message": "overloaded", "code": 503}}\n'), "groq") as field:
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
    async with in_front_of(stream(b"data: : keepalive\n\n", ROLE, *words("hel", "lo"), STOP, DONE)) as field:
        answer = await field.ask()

    assert answer.json["choices"][0]["message"]["content"] == "hello"
    assert answer.json["object"] == "chat.completion"
