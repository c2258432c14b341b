"""How a stream's choices end, what stands around them, and what may not be in them at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.repair.finish import FAILED, FinishReasons
from adapters.repair.machine import AnswerFailedError
from adapters.types import EventKind, Operation
from tests.fakes.repaired import (
    MEMBERS,
    ROLE,
    STOP,
    TOOLS,
    call,
    chunk,
    event_of,
    raw_body,
    repair_of,
    repair_with,
    repaired,
    repaired_events,
)

CALL = chunk(tool_calls=[call(0, "{}", "get_time", id="x", type="function")])
HI = chunk(content="Hi")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"),
        ("eos", "stop"), ("eos_token", "stop"), ("stop_sequence", "stop"), ("end_turn", "stop"), ("STOP", "stop"),
        ("COMPLETE", "stop"), ("never heard of it", "stop"),
        ("max_tokens", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"),
        ("SAFETY", "content_filter"), ("sensitive", "content_filter"), ("refusal", "content_filter"),
        ("tool_calls", "stop"), ("tool_use", "stop"), ("function_call", "stop"),
    ],
)  # fmt: skip
def test_a_text_ends_with_a_word_that_clients_know(reason: str, told: str) -> None:
    """openai/openai-dotnet#267; theopenco/llmgateway#3492; BerriAI/litellm#12481."""
    assert repaired([ROLE, HI, chunk(reason)]).finish[0] == [told]


@pytest.mark.parametrize("reason", ["tool_calls", "tool_use", "stop", "eos", "end_turn", "function_call", "tool_call"])
def test_an_answer_with_calls_ends_with_tool_calls(reason: str) -> None:
    """BerriAI/litellm#12862 and Blaizzy/mlx-vlm#1014: agents act on calls only when the reason names them."""
    assert repaired([ROLE, CALL, chunk(reason)], request={**TOOLS, "tool_choice": "required"}).finish[0] == [
        "tool_calls"
    ]


@pytest.mark.parametrize("reason", ["stop", "eos"])
def test_after_a_named_tool_stop_stays_as_openai_says_it(reason: str) -> None:
    """vllm-project/vllm#25054 has OpenAI's own answers."""
    named = {"type": "function", "function": {"name": "get_time"}}
    assert repaired([ROLE, CALL, chunk(reason)], request={**TOOLS, "tool_choice": named}).finish[0] == ["stop"]


def test_the_file_of_a_provider_comes_before_what_is_usual() -> None:
    provider = repair_with(finish_reason={"values": ["eos"], "nonstandard": {"eos": "length"}})
    assert repaired([ROLE, HI, chunk("eos")], provider).finish[0] == ["length"]


@pytest.mark.parametrize("reason", ["abort", "error", "network_error"])
def test_a_reason_that_tells_of_a_failure_is_one(reason: str) -> None:
    with pytest.raises(AnswerFailedError, match=reason):
        repaired([ROLE, HI, chunk(reason)], "vllm")


def test_the_error_beside_such_a_reason_is_what_is_told() -> None:
    last = chunk("error")
    last["choices"][0]["error"] = {"message": "overheated", "code": 503}
    with pytest.raises(AnswerFailedError) as failure:
        repaired([ROLE, HI, last])
    assert (failure.value.fields.message, failure.value.fields.status) == ("overheated", 503)


@pytest.mark.parametrize("none", ["", "null", None])
def test_a_reason_that_is_none_ends_nothing(none: str | None) -> None:
    """ollama/ollama#4357, sgl-project/sglang#1407, Ai00-X/ai00_server#90, aaif-goose/goose#10258."""
    out = repaired([chunk(none, role="assistant"), chunk(none, content="Hi"), chunk(none, content="!"), STOP])
    assert out.said == ("Hi!", "", [], ["stop"])
    assert [one["choices"][0]["finish_reason"] for one in out.events] == [None, None, None, "stop"]


def test_a_reason_that_is_left_out_until_the_end_is_null() -> None:
    """mlflow/mlflow#23139: clients look it up in each chunk."""
    open_ended = [{**one, "choices": [{"index": 0, "delta": one["choices"][0]["delta"]}]} for one in (ROLE, HI, HI)]
    out = repaired([*open_ended, STOP])
    assert [one["choices"][0]["finish_reason"] for one in out.events] == [None, None, None, "stop"]


def test_a_reason_on_reasoning_and_calls_ends_nothing() -> None:
    """su-kaka/gcli2api#403."""
    pieces = [chunk("stop", reasoning="hm"), chunk("stop", tool_calls=[call(0, "{}", "get_time", id="x")])]
    out = repaired([chunk("stop", role="assistant", content=""), *pieces, chunk("stop")])
    assert out.said == ("", "hm", [("get_time", "{}")], ["tool_calls"])


def test_a_reason_on_every_chunk_counts_on_the_last() -> None:
    """BerriAI/litellm#2195, open-webui/open-webui#16377."""
    out = repaired(
        [chunk("stop", role="assistant", content="a"), chunk("stop", content="b"), chunk("stop", content="c")]
    )
    assert [one["choices"][0]["finish_reason"] for one in out.events] == [None, None, "stop"]
    assert out.content[0] == "abc"


def test_a_choice_ends_once() -> None:
    """sgl-project/sglang#8417."""
    out = repaired([ROLE, HI, STOP, STOP, chunk("length"), chunk(), chunk(content="")])
    assert (out.finish[0], len(out.events)) == (["stop"], 3)


def test_text_after_the_end_is_not_lost() -> None:
    out = repaired([ROLE, STOP, chunk("stop", content="late")])
    assert out.said == ("late", "", [], ["stop"])


def test_an_end_that_is_told_twice_comes_after_all_text() -> None:
    out = repaired([ROLE, chunk("stop", content="a"), STOP])
    assert [(one["choices"][0]["delta"].get("content"), one["choices"][0]["finish_reason"]) for one in out.events] == [
        ("", None), ("a", "stop"),
    ]  # fmt: skip


@pytest.mark.parametrize("last", [STOP, chunk("stop", content="")])
def test_an_answer_of_nothing_ends_too(last: Any) -> None:
    assert repaired([ROLE, last]).said == ("", "", [], ["stop"])
    assert repaired([last]).finish[0] == ["stop"]


def test_the_end_of_one_choice_does_not_wait_for_another() -> None:
    stream = [
        chunk("stop", role="assistant", content="a"),
        chunk(index=1, role="assistant", content="b"),
        chunk("stop", index=1),
    ]
    out = repaired(stream, request={"n": 2})
    assert [(one["choices"][0]["index"], one["choices"][0]["finish_reason"]) for one in out.events] == [
        (0, "stop"), (1, None), (1, "stop"),
    ]  # fmt: skip


@pytest.mark.parametrize(("pieces", "reason"), [([HI], "stop"), ([CALL], "tool_calls")])
def test_a_missing_reason_is_told_where_the_provider_leaves_it_out(pieces: list[Any], reason: str) -> None:
    provider = repair_with(finish_reason={"missing": "stop"})
    assert repaired([ROLE, *pieces], provider).finish[0] == [reason]
    assert repaired([ROLE, *pieces], provider, done=False).finish == {}
    assert repaired([ROLE, *pieces]).finish == {}


def test_words_are_read_the_same_everywhere() -> None:
    rules = FinishReasons({"repetition": "stop", "abort": "error"})
    assert [rules.read(word) for word in ("repetition", "abort", None, 5)] == ["stop", FAILED, None, None]


# The envelope


def test_what_strict_clients_need_is_filled_in_and_stays_the_same() -> None:
    bare = [{"choices": one["choices"]} for one in (ROLE, HI, STOP)]
    events = repaired(bare).events
    assert len({(one["id"], one["created"], one["model"], one["object"]) for one in events}) == 1
    assert events[0]["id"].startswith("chatcmpl-")
    assert (events[0]["model"], events[0]["object"]) == ("up", "chat.completion.chunk")
    assert isinstance(events[0]["created"], int)


@pytest.mark.parametrize(
    ("member", "odd", "mended"),
    [
        ("object", "extensions.chat.completion.chunk", "chat.completion.chunk"),  # openai/openai-dotnet#706
        ("object", "chat.completion", "chat.completion.chunk"),
        ("object", "", "chat.completion.chunk"),
        ("created", 1760000000.25, 1760000000),
        ("created", "1760000000", 1760000000),
        ("created", 1760000000123, 1760000000),
        ("model", None, "up"),
    ],
)
def test_odd_members_of_the_envelope_are_mended(member: str, odd: Any, mended: Any) -> None:
    out = repaired([{**one, member: odd} for one in (ROLE, HI, HI, STOP)], "openai")
    assert {one[member] for one in out.events} == {mended}


def test_all_events_of_an_answer_have_one_id() -> None:
    """OpenAI API reference, page The chat completion chunk object: "Each chunk has the same ID"."""
    stream = [{**one, "id": f"gen-{number}"} for number, one in enumerate((ROLE, HI, HI, STOP))]
    out = repaired(stream)
    assert {one["id"] for one in out.events} == {"gen-0"}
    assert out.said == ("HiHi", "", [], ["stop"])


def test_a_null_or_missing_delta_is_an_empty_one() -> None:
    last = {**MEMBERS, "choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}
    bare = {**MEMBERS, "choices": [{"finish_reason": "stop"}]}
    for end in (last, bare):
        assert repaired([ROLE, HI, end]).events[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]


def test_a_message_in_place_of_a_delta_is_one() -> None:
    odd = {
        **MEMBERS,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": None}],
    }
    out = repaired([odd, STOP])
    assert out.said == ("Hi", "", [], ["stop"])
    assert "message" not in out.events[0]["choices"][0]


def test_the_role_comes_once_in_the_first_delta() -> None:
    """Clients that join deltas, as openai-python's stream helper does, would read "assistantassistant"."""
    repeated = [chunk(role="assistant", content=word) for word in ("a", "b", "c")]
    assert repaired([*repeated, chunk("stop", role="assistant")]).roles == {0: "assistant"}
    assert repaired([chunk(content="a"), chunk(content="b"), STOP]).roles == {0: "assistant"}
    spaced = [event_of(chunk(role="assistant"))]
    for word in ("a", "b"):
        data = json.dumps(chunk(role="assistant", content=word)).encode()
        spaced.append(event_of(json.loads(data)))
    assert b"role" not in b"".join(one.raw for one in repaired_events(spaced)[1:])


def test_members_that_are_the_providers_own_never_leak() -> None:
    """BerriAI/litellm#361."""
    own = {"x_groq": {"id": "req_1"}, "usage_breakdown": {}}
    out = repaired([{**one, **own} for one in (ROLE, HI, HI, STOP)], "groq")
    assert out.content[0] == "HiHi"
    assert not any(set(own) & set(one) for one in out.events)
    assert "x_groq" in repaired([{**ROLE, **own}]).events[0]  # nobody said that it is private there


def test_an_error_inside_a_private_member_is_found() -> None:
    with pytest.raises(AnswerFailedError, match="over capacity"):
        repaired([ROLE, HI, {**STOP, "x_groq": {"error": "over capacity"}}], "groq")


# Usage in odd places

EVENT_OPERATION = Operation.CHAT
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


def found_usage(payload: Any, provider: str) -> Any:
    machine = repair_of(provider).stream(EVENT_OPERATION, None, raw_body({}))
    machine.take(event_of(ROLE))
    machine.take(event_of(HI))
    (event,) = machine.take(event_of(payload))
    assert "usage" not in json.loads(event.data)
    assert "usage" not in json.loads(event.data)["choices"][0]
    return machine.usage


def test_usage_is_found_where_the_provider_keeps_it() -> None:
    usage = found_usage({**STOP, "x_groq": {"id": "r", "usage": USAGE}}, "groq")
    assert usage.usage.completion_tokens == 3
    assert json.loads(usage.data)["choices"] == []
    assert "x_groq" not in json.loads(usage.data)


def test_usage_on_a_choice_is_found() -> None:
    """As Moonshot sends it (MoonshotAI docs, page Chat, read in copies of 2026)."""
    last = chunk("stop")
    last["choices"][0]["usage"] = USAGE
    assert found_usage(last, "openai_compatible").usage.prompt_tokens == 9


# Errors


@pytest.mark.parametrize(
    "payload",
    [
        {"error": "overloaded", "error_type": "overloaded"},
        {"error": {"message": "x", "code": 500}},
        {"error": {"message": "x"}, "status_code": 400},
        {"object": "error", "message": "x", "type": "BadRequestError", "param": None, "code": 400},
        {"message": "x", "type": "too_many_requests_error", "param": "quota", "code": "request_quota_exceeded"},
        {"detail": "x"},
        {"detail": [{"loc": ["body"], "msg": "x"}]},
    ],
)
def test_errors_are_known_in_every_envelope(payload: Any) -> None:
    assert event_of(payload).kind is EventKind.ERROR


@pytest.mark.parametrize(
    "payload", [{}, {"type": "ping"}, {"message": {"role": "assistant"}}, {"detail": ""}, {"id": "x"}]
)
def test_other_events_without_choices_are_no_errors(payload: Any) -> None:
    assert event_of(payload).kind is EventKind.OTHER


def test_plain_text_is_known_as_such_and_nothing_else_is() -> None:
    assert event_of(HI).plain
    assert event_of(chunk(content="a", reasoning=None, tool_calls=None)).plain
    for content in ("", "a"):
        opening = event_of(chunk(role="assistant", content=content))
        assert (opening.plain, opening.opens) == (True, True)
    for end in (chunk("stop"), chunk("length", content=""), chunk("content_filter", content=None)):
        assert event_of(end).plain
    for odd in (
        {**HI, "id": ""}, {**HI, "object": ""}, {**HI, "created": 1.5}, {**HI, "created": 1760000000123},
        {**HI, "model": None}, chunk(content=""), chunk(role="user", content="a"),
        chunk(role="assistant", content=None), chunk("stop", role="assistant"), chunk("stop", tool_calls=[]),
        chunk("stop", content="a"), chunk("", content="a"),
        chunk(content="a", reasoning="b"), chunk(content=["a"]), chunk(index=None, content="a"),
        chunk(content="a", tool_calls=[call(0)]),
    ):  # fmt: skip
        assert not event_of(odd).plain
