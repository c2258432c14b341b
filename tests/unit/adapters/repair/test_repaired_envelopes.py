"""What stands around a stream's choices: members, roles, usage in odd places, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.repair.misplaced import AnswerFailedError
from adapters.types import EventKind, Operation
from tests.fakes.repaired import (
    MEMBERS,
    ROLE,
    STOP,
    call,
    chunk,
    event_of,
    raw_body,
    repair_of,
    repaired,
    repaired_events,
)
from tests.unit.adapters.repair.test_repaired_ends import HI

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
