"""Faults go wrong as told: by the operator, by a header, or by a model's name."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from adapters.failures import from_response, read_error
from adapters.simulator.faults import Fault, FaultError, FaultKind
from adapters.simulator.wire import Break
from adapters.types import FailureKind
from tests.unit.adapters.simulator.asking import CHATS, Heard, ask, simulator, user

PLAIN = "openai_compatible"
COUNT = [user("Count to 9")]


def kind_of(provider: str, heard: Heard) -> FailureKind:
    cases = simulator(provider).spec.errors.cases
    return from_response(provider, heard.status, heard.headers, heard.raw, str, cases).kind


@pytest.mark.parametrize("provider", CHATS)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("status=500", FailureKind.SERVER_ERROR),
        ("rate_limit=9", FailureKind.RATE_LIMITED),
        ("overload", FailureKind.OVERLOADED),
        ("context", FailureKind.CONTEXT_LENGTH),
    ],
)
def test_a_refusal_is_understood_as_what_it_is(provider: str, fault: str, kind: FailureKind) -> None:
    heard = ask(simulator(provider), headers={"x-simulate": fault})

    assert kind_of(provider, heard) is kind
    assert read_error(heard.raw) is not None


def test_a_rate_limit_says_when_to_come_back_and_that_nothing_is_left() -> None:
    heard = ask(simulator("groq"), model="simulate-rate_limit-9")

    assert (heard.status, heard.headers["retry-after"]) == (429, "9")
    assert heard.headers["x-ratelimit-remaining-requests"] == "0"


def test_a_case_of_the_file_can_be_asked_for() -> None:
    heard = ask(simulator("groq"), headers={"x-simulate": "case=tool_arguments_invalid"})

    assert (heard.status, heard.json["error"]["code"]) == (400, "tool_use_failed")
    assert json.loads(heard.json["error"]["failed_generation"]) == {"name": "simulated", "arguments": {}}


def test_a_stream_fails_after_as_many_events_as_told() -> None:
    heard = ask(simulator("cerebras"), model="simulate-stream_error-3", messages=COUNT, stream=True)

    assert [("error" in payload) for payload in heard.payloads] == [False, False, False, True]


@pytest.mark.parametrize(("fault", "ending"), [("cut=2", Break.CUT), ("hang=2", Break.HANG)])
def test_a_stream_breaks_off(fault: str, ending: Break) -> None:
    heard = ask(simulator(PLAIN), headers={"x-simulate": fault}, messages=COUNT, stream=True)

    assert (len(heard.payloads), heard.ending) == (2, ending)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_may_never_begin(stream: bool) -> None:
    assert ask(simulator(PLAIN), model="simulate-hang", stream=stream).delay == math.inf


def test_a_whole_answer_may_break_off() -> None:
    heard = ask(simulator(PLAIN), model="simulate-cut")

    assert heard.ending is Break.CUT
    with pytest.raises(json.JSONDecodeError):
        json.loads(heard.raw)


def test_malformed_json_comes_in_an_answer_that_is_whole() -> None:
    whole = ask(simulator(PLAIN), model="simulate-malformed")
    with pytest.raises(json.JSONDecodeError):
        json.loads(whole.raw)

    stream = ask(simulator(PLAIN), model="simulate-malformed", messages=COUNT, stream=True)
    with pytest.raises(json.JSONDecodeError):
        assert stream.payloads
    assert stream.raw.endswith(b"data: [DONE]\n\n")


def test_an_empty_answer_has_no_choices() -> None:
    assert ask(simulator(PLAIN), model="simulate-empty").json["choices"] == []
    assert ask(simulator(PLAIN), model="simulate-empty", stream=True).payloads == ["[DONE]"]


def test_a_slow_answer_takes_its_time_between_tokens() -> None:
    heard = ask(simulator(PLAIN), model="simulate-slow-2", messages=[user("Count to 3")], stream=True)

    assert heard.waits == [2, 2, 2]


def test_only_the_first_requests_meet_a_fault_of_the_operators() -> None:
    sim = simulator(PLAIN, fault=Fault.parse("status=503"), fault_first=2)

    assert [ask(sim).status for _ in range(4)] == [503, 503, 200, 200]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("status=503", Fault(FaultKind.STATUS, "503")),
        (" Overload ", Fault(FaultKind.OVERLOAD, "3")),
        ("rate_limit-2.5", Fault(FaultKind.RATE_LIMIT, "2.5")),
        ("case=flex_capacity", Fault(FaultKind.CASE, "flex_capacity")),
    ],
)
def test_a_fault_is_read(text: str, fault: Fault) -> None:
    assert Fault.parse(text) == fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hnag", "Did you mean 'hang'"),
        ("status=7", "400 to 599"),
        ("cut=soon", "a number is expected"),
        ("", "is no fault"),
    ],
)
def test_a_fault_that_is_none_is_told(text: str, words: str) -> None:
    with pytest.raises(FaultError, match=words):
        Fault.parse(text)


def test_a_request_for_a_fault_that_is_none_is_refused() -> None:
    answer: Any = ask(simulator(PLAIN), model="simulate-chaos").json

    assert "no fault" in answer["error"]["message"]
