"""Functions become tools, and what is no list of functions is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.errors import ProviderError
from adapters.functions import as_tools, old_style
from adapters.types import FailureKind
from tests.fakes.prepared import body_of

LOOK = {"name": "look", "description": "Look", "parameters": {"type": "object", "properties": {}}}
WAIT = {"name": "wait"}


def made(**members: Any) -> tuple[dict[str, Any], list[str]]:
    before = body_of(**members)
    copy = dict(before)
    body, changes = as_tools(before)
    assert before == copy
    return {name: json.loads(bytes(value)) for name, value in body.items()}, [str(change) for change in changes]


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ({"name": "look"}, {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_functions_are_tools_and_a_call_of_one_is_a_choice(choice: Any, told: Any) -> None:
    body, changes = made(functions=[LOOK, WAIT], function_call=choice, n=1)

    assert body == {
        "tools": [{"type": "function", "function": LOOK}, {"type": "function", "function": WAIT}],
        "tool_choice": told,
        "n": 1,
    }
    assert changes == ["functions=mapped", "function_call=mapped"]


def test_past_calls_and_what_came_of_them_belong_together() -> None:
    call = {"name": "look", "arguments": "{}"}
    messages = [
        {"role": "user", "content": "a function"},
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "look", "content": "dark"},
        {"role": "assistant", "content": "So be it.", "function_call": None},
    ]
    body, _ = made(functions=[LOOK], messages=messages)

    assert body["messages"] == [
        messages[0],
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_00001", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "call_00001", "content": "dark"},
        {"role": "assistant", "content": "So be it."},
    ]


@pytest.mark.parametrize("empty", [[], None])
def test_a_list_without_functions_asks_for_nothing(empty: Any) -> None:
    assert made(functions=empty, function_call="auto", n=1) == ({"n": 1}, [])


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"functions": "look"}, "functions"),
        ({"functions": [{"description": "nameless"}]}, "functions"),
        ({"functions": [LOOK], "tools": [{"type": "function", "function": WAIT}]}, "functions"),
        ({"functions": [LOOK], "function_call": "required"}, "function_call"),
        ({"functions": [LOOK], "function_call": {"type": "function"}}, "function_call"),
        ({"functions": [], "function_call": {"name": "look"}}, "function_call"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(members: dict[str, Any], param: str) -> None:
    with pytest.raises(ProviderError) as caught:
        made(**members)
    assert (caught.value.kind, caught.value.param) == (FailureKind.BAD_REQUEST, param)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (
            [{"index": 0, "id": "x", "type": "function", "function": LOOK | {"arguments": "{"}}],
            {"name": "look", "arguments": "{"},
        ),
        ([{"index": 0, "function": {"arguments": "}"}}], {"arguments": "}"}),
        ([{"index": 1, "function": {"arguments": "}"}}], None),
        ([], None),
        (None, None),
    ],
)
def test_the_first_call_is_told_without_its_id(calls: Any, told: Any) -> None:
    assert old_style(calls) == told
