"""Tool calls as providers stream them: every client that joins pieces by index gets whole calls."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adapters.draft import AnswerNeeds
from tests.fakes.repaired import ROLE, TOOLS, call, chunk, event_of, repaired, repaired_events

OSLO = '{"city":"Oslo"}'
FIRST = {"id": "call_1", "type": "function"}
END = chunk("tool_calls")


def heard_calls(*pieces: list[dict[str, Any]], end: Any = END, **options: Any) -> list[tuple[str, str]]:
    heard = repaired([ROLE, *(chunk(tool_calls=piece) for piece in pieces), end], **options)
    assert heard.finish[0] == ["tool_calls"]
    assert all(one["id"] for one in heard.calls[0])
    assert len({one["id"] for one in heard.calls[0]}) == len(heard.calls[0])
    return [(one["name"], one["arguments"]) for one in heard.calls[0]]


STREAMS: list[Any] = [
    pytest.param(
        [[call(0, "", "get_weather", **FIRST)], [call(0, '{"city":')], [call(0, '"Oslo"}')]], id="as-openai-does"
    ),
    pytest.param([[call(0, OSLO, "get_weather", **FIRST)]], id="in-one-piece"),
    pytest.param([[call(0, '{"ci', "get_weather", **FIRST)], [call(0, 'ty":"Oslo"}')]], id="vllm-project/vllm#34887"),
    pytest.param([[call(None, OSLO, "get_weather", **FIRST)]], id="no-index: ollama/ollama#7881"),
    pytest.param(
        [[call(None, "", "get_weather", **FIRST)], [call(None, '{"city":')], [call(None, '"Oslo"}')]],
        id="no-index-ever: AstrBotDevs/AstrBot#6661",
    ),
    pytest.param([[call(0, OSLO, "get_weather")]], id="no-id: continuedev/continue#13225"),
    pytest.param([[call(0, OSLO, "get_weather", id="", type="")]], id="empty-id-and-type"),
    pytest.param(
        [[call(0, '{"city":', "get_weather", **FIRST)], [call(0, '"Oslo"}', "get_weather", **FIRST)]],
        id="all-repeated: SillyTavern/SillyTavern#5811, NousResearch/hermes-agent#8259",
    ),
    pytest.param(
        [[call(0, '{"city":', "get_weather", **FIRST)],
         [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '"Oslo"}'}}]],
        id="later-nulls",
    ),
    pytest.param([[call(0, {"city": "Oslo"}, "get_weather", **FIRST)]], id="arguments-as-object"),
    pytest.param(
        [[call(0, '{"city":', **FIRST)], [call(0, '"Oslo"}', "get_weather")]], id="name-comes-late: vercel/ai#14760"
    ),
    pytest.param(
        [[call(0, "", "get_", **FIRST)], [call(0, OSLO, "weather")]], id="name-in-pieces: continuedev/continue#5849"
    ),
    pytest.param(
        [[call(0, '{"city":', "get_weather", **FIRST)], [call(0, '"Oslo"}')], [call(0, OSLO)]],
        id="all-once-more: vllm-project/vllm#42167",
    ),
    pytest.param(
        [[call(0, OSLO, "get_weather", **FIRST)], [call(0, OSLO, "get_weather", **FIRST)]], id="whole-call-twice"
    ),
    pytest.param(
        [[call(0, OSLO, "get_weather", **FIRST)], [call(0, {"city": "Oslo"}, "get_weather")]],
        id="once-more-as-an-object",
    ),
]  # fmt: skip


@pytest.mark.parametrize("pieces", STREAMS)
def test_one_call_comes_out_whole(pieces: list[list[dict[str, Any]]]) -> None:
    assert heard_calls(*pieces) == [("get_weather", OSLO)]


TWO: list[Any] = [
    pytest.param(
        [[call(0, '{"a"', "get_time", id="x", type="function")],
         [call(1, '{"b"', "get_weather", id="y", type="function")],
         [call(0, ":1}")], [call(1, ":2}")]],
        id="interleaved",
    ),
    pytest.param(
        [[call(0, '{"a":1}', "get_time", id="x"), call(1, '{"b":2}', "get_weather", id="y")]], id="in-one-event"
    ),
    pytest.param(
        [[call(0, '{"a":1}', "get_time", id="x")], [call(0, '{"b":2}', "get_weather", id="y")]],
        id="same-index: ollama/ollama#15457, apache/maka#1976",
    ),
    pytest.param([[call(0, '{"a":1}', "get_time")], [call(0, '{"b":2}', "get_weather")]], id="same-index-and-no-id"),
    pytest.param(
        [[call(0, '{"a":1}', "get_time", id="x")], [call(0, "", "get_weather", id="y")], [call(1, '{"b":2}')]],
        id="second-starts-at-0-and-goes-on-at-1: agno-agi/agno#8879",
    ),
    pytest.param(
        [[call(None, "", "get_time", id="x")], [call(None, '{"a":1}')], [call(None, "", "get_weather", id="y")],
         [call(None, '{"b":2}')]],
        id="no-index, fragments without id: oracle/langchain-oracle#253",
    ),
    pytest.param(
        [[call(None, '{"a":1}', "get_time"), call(None, '{"b":2}', "get_weather")]], id="neither-index-nor-id"
    ),
    pytest.param(
        [[call(3, '{"a":1}', "get_time", id="x")], [call(7, '{"b":2}', "get_weather", id="y")]], id="odd-indexes"
    ),
    pytest.param(
        [[call(0, '{"a":1}', "get_time", id="x")], [call(1, '{"b":2}', "get_weather", id="x")]], id="one-id-for-both"
    ),
]  # fmt: skip


@pytest.mark.parametrize("pieces", TWO)
def test_two_calls_stay_two(pieces: list[list[dict[str, Any]]]) -> None:
    assert heard_calls(*pieces) == [("get_time", '{"a":1}'), ("get_weather", '{"b":2}')]


@pytest.mark.parametrize("pieces", TWO)
def test_of_several_calls_the_first_is_kept_where_only_one_may_come(pieces: list[list[dict[str, Any]]]) -> None:
    assert heard_calls(*pieces, needs=AnswerNeeds(one_call=True)) == [("get_time", '{"a":1}')]


@pytest.mark.parametrize("arguments", [None, "", " "])
def test_a_call_without_arguments_adds_up_to_an_empty_object(arguments: str | None) -> None:
    """vercel/ai#6687."""
    ((name, text),) = heard_calls([call(0, arguments, "get_time", **FIRST)])
    assert (name, text.strip()) == ("get_time", "{}")


def test_null_arguments_become_text() -> None:
    piece = {"index": 0, **FIRST, "function": {"name": "get_time", "arguments": None}}
    heard = repaired([ROLE, chunk(tool_calls=[piece]), END])
    assert heard.events[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] == ""
    assert heard.said[2] == [("get_time", "{}")]


def test_a_call_that_was_cut_is_not_completed() -> None:
    """vllm-project/vllm#53269: the client has to see that the arguments broke off."""
    heard = repaired([ROLE, chunk(tool_calls=[call(0, "", "get_time", **FIRST)]), chunk("length")])
    assert heard.said == ("", "", [("get_time", "")], ["length"])


def test_the_rest_of_repeated_arguments_is_added_at_the_end_alone() -> None:
    pieces = [chunk(tool_calls=[call(0, '{"city":', "get_weather", **FIRST)])]
    last = chunk("tool_calls", tool_calls=[call(0, OSLO)])
    assert repaired([ROLE, *pieces, last]).said[2] == [("get_weather", OSLO)]
    # In the middle the same bytes may be an object within the object.
    nested = [*pieces, chunk(tool_calls=[call(0, OSLO)]), chunk(tool_calls=[call(0, "}")]), END]
    assert repaired([ROLE, *nested]).said[2] == [("get_weather", '{"city":' + OSLO + "}")]


def test_made_up_ids_are_the_same_each_time_and_unlike_in_another_answer() -> None:
    stream = [ROLE, chunk(tool_calls=[call(0, OSLO, "get_weather")]), END]
    ids = [repaired(stream).calls[0][0]["id"] for _ in range(2)]
    other = [{**one, "id": "chatcmpl-2"} for one in stream]
    assert ids[0] == ids[1] != repaired(other).calls[0][0]["id"]
    assert ids[0].startswith("call_")


def test_calls_as_openai_sends_them_pass_byte_for_byte() -> None:
    events = [
        event_of(one)
        for one in (
            chunk(role="assistant", content=None),
            chunk(tool_calls=[call(0, "", "get_time", id="x", type="function")]),
            chunk(tool_calls=[call(0, '{"a":1}')]),
            chunk(tool_calls=[call(1, "", "get_weather", id="y", type="function")]),
            chunk(tool_calls=[call(1, "")]),
            chunk(tool_calls=[call(1, "{}")]),
            END,
        )
    ]
    assert [one.raw for one in repaired_events(events)] == [one.raw for one in events]


def test_what_a_piece_holds_besides_goes_on() -> None:
    extra = {"google": {"thought_signature": "abc"}}
    heard = repaired([ROLE, chunk(tool_calls=[call(None, OSLO, "get_weather", extra_content=extra)]), END])
    assert heard.events[1]["choices"][0]["delta"]["tool_calls"][0]["extra_content"] == extra


@pytest.mark.parametrize("calls", [[5], [{"index": -3}], [{"index": 10**12}]])
def test_what_is_no_call_is_refused(calls: list[Any]) -> None:
    with pytest.raises(msgspec.DecodeError):
        repaired([ROLE, chunk(tool_calls=calls)])


def test_an_empty_list_of_calls_is_no_call() -> None:
    heard = repaired([chunk(role="assistant", content="Hi", tool_calls=[]), chunk("stop", tool_calls=[])])
    assert all("tool_calls" not in one["choices"][0]["delta"] for one in heard.events)
    assert heard.said == ("Hi", "", [], ["stop"])


# The old style


def function_call(**members: Any) -> dict[str, Any]:
    return chunk(function_call=members)


def test_a_function_call_in_the_old_style_stays_one() -> None:
    stream = [ROLE, function_call(name="f", arguments=None), chunk("function_call")]
    heard = repaired(stream, request={"functions": []})
    joined = [one["choices"][0]["delta"].get("function_call") for one in heard.events]
    assert joined == [None, {"name": "f", "arguments": ""}, {"arguments": "{}"}, None]
    assert heard.finish[0] == ["function_call"]


def test_a_client_that_offered_tools_gets_the_new_style() -> None:
    stream = [ROLE, function_call(name="get_time", arguments="{"), function_call(arguments="}"), chunk("function_call")]
    assert repaired(stream, request=TOOLS).said == ("", "", [("get_time", "{}")], ["tool_calls"])


def test_a_call_in_both_styles_comes_once() -> None:
    both = chunk(function_call={"name": "f", "arguments": "{}"}, tool_calls=[call(0, "{}", "f", **FIRST)])
    heard = repaired([ROLE, both, END])
    assert "function_call" not in heard.events[1]["choices"][0]["delta"]
    assert heard.said[2] == [("f", "{}")]


# Calls written as text

WRITTEN = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [WRITTEN, f"\n{WRITTEN}", f"[{WRITTEN}]",
     '{"type": "function", "function": {"name": "get_weather", "arguments": "{\\"city\\":\\"Oslo\\"}"}}'],
)  # fmt: skip
def test_a_call_written_as_text_becomes_one(text: str, size: int) -> None:
    pieces = [chunk(content=text[at : at + size]) for at in range(0, len(text), size)]
    heard = repaired([ROLE, *pieces, chunk("stop")], "fireworks", request=TOOLS)
    assert heard.said == ("", "", [("get_weather", OSLO)], ["tool_calls"])


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ('{"name": "unknown", "parameters": {}}', TOOLS),
        ('{"weather": "fine"}', TOOLS),
        ('{"name": "get_weather"', TOOLS),
        ("[1, 2]", TOOLS),
        (WRITTEN, {}),
        (WRITTEN, {**TOOLS, "tool_choice": "none"}),
        (WRITTEN, {**TOOLS, "response_format": {"type": "json_object"}}),
    ],
)
def test_other_json_stays_text(text: str, request_: dict[str, Any]) -> None:
    events = [event_of(one) for one in (ROLE, chunk(content=text[:5]), chunk(content=text[5:]), chunk("stop"))]
    out = repaired_events(events, "fireworks", request=request_)
    assert [one.raw for one in out] == [one.raw for one in events]
