"""The schema that stands for tools, and the calls that are read out of what conforms to it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from adapters.shapes.tool_prompt import instruction, retold
from adapters.shapes.tool_schema import CallFormat, Tool, choose, read_tools

ANYTHING = Tool("anything", "", {"type": "object"})
NUMBER = Tool(
    "number", "Takes a number", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
)


def valid(form: CallFormat, value: Any) -> bool:
    return jsonschema_rs.validator_for(form.schema).is_valid(value)


def calls(*made: tuple[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in made]}


@pytest.mark.parametrize(
    ("may_speak", "parallel", "value", "allowed"),
    [
        (True, True, {"answer": "x"}, True),
        (True, True, calls(("number", {"n": 1}), ("anything", {})), True),
        (True, False, calls(("number", {"n": 1}), ("anything", {})), False),
        (False, True, {"answer": "x"}, False),
        (False, True, calls(), False),
        (False, True, calls(("number", {"n": "1"})), False),
        (False, True, calls(("other", {})), False),
        (True, True, {"answer": "x", **calls(("anything", {}))}, False),
    ],
)
def test_a_schema_allows_calls_of_the_tools_and_nothing_else(
    may_speak: bool, parallel: bool, value: Any, allowed: bool
) -> None:
    assert valid(CallFormat([ANYTHING, NUMBER], may_speak=may_speak, parallel=parallel), value) is allowed


def test_one_forced_call_is_asked_for_by_its_arguments_alone() -> None:
    form = CallFormat([NUMBER], may_speak=False, parallel=False)

    assert form.schema == NUMBER.parameters
    text, (call,) = form.read('{"n": 5}')
    assert (text, call["function"]) == (None, {"name": "number", "arguments": '{"n": 5}'})


def test_arguments_come_as_text_in_the_order_the_model_gave_them() -> None:
    form = CallFormat([ANYTHING], may_speak=True, parallel=True)
    text, (first, second) = form.read(json.dumps(calls(("anything", {"b": 1, "a": "ü"}), ("anything", {}))))

    assert text is None
    assert first["function"]["arguments"] == '{"b":1,"a":"ü"}'
    assert first["id"] != second["id"]


@pytest.mark.parametrize("holder", ["$defs", "definitions"])
def test_references_of_several_tools_lead_to_their_own_definitions(holder: str) -> None:
    def tool(name: str, kind: str) -> Tool:
        parameters = {
            "type": "object",
            "properties": {"it": {"$ref": f"#/{holder}/it"}, "self": {"$ref": "#"}},
            "required": ["it"],
            holder: {"it": {"type": kind}},
        }
        return Tool(name, "", parameters)

    form = CallFormat([tool("a", "string"), tool("b-b", "integer")], may_speak=False, parallel=True)

    assert valid(form, calls(("a", {"it": "x"}), ("b-b", {"it": 1, "self": {"it": 2}})))
    assert not valid(form, calls(("a", {"it": 1})))
    assert not valid(form, calls(("b-b", {"it": 1, "self": {"it": "x"}})))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('{"answer": "abc', "abc"),
        ('{"answer":"a\\nb\\"c\\u00e', 'a\nb"c'),
        ('  {\n "answer" : "', ""),
        ('{"answer": "done"}', "done"),
        ('{"tool_calls": [', ""),
        ("", ""),
    ],
)
def test_as_much_of_a_cut_answer_is_told_as_there_is(written: str, text: str) -> None:
    assert CallFormat([ANYTHING], may_speak=True, parallel=True).read_cut(written) == (text, [])


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        (None, "auto", ["a", "b"]),
        ("auto", "auto", ["a", "b"]),
        ("none", "none", ["a", "b"]),
        ("required", "required", ["a", "b"]),
        ("any", "required", ["a", "b"]),
        ({"type": "function", "function": {"name": "b"}}, "required", ["b"]),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "a"}}]}},
            "auto",
            ["a"],
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"function": {"name": "b"}}]}},
            "required",
            ["b"],
        ),
    ],
)
def test_a_choice_leaves_some_tools_to_choose_from(choice: Any, mode: str, names: list[str]) -> None:
    tools = read_tools([{"type": "function", "function": {"name": name}} for name in ("a", "b")])
    found, left = choose(tools, choice)

    assert (found, [tool.name for tool in left]) == (mode, names)


def test_the_instruction_names_each_tool_with_its_arguments() -> None:
    told = instruction([ANYTHING, NUMBER], may_speak=True, sole=False)

    assert "number: Takes a number" in told
    assert '"required":["n"]' in told
    assert '"answer"' in told
    assert '"answer"' not in instruction([NUMBER], may_speak=False, sole=False)


def test_calls_in_the_old_style_are_retold_too() -> None:
    messages = retold(
        [
            {"role": "assistant", "content": "One moment.", "function_call": {"name": "f", "arguments": '{"a":1}'}},
            {"role": "function", "name": "f", "content": "5"},
        ]
    )

    assert messages[0]["content"].startswith("One moment.\n")
    assert json.loads(messages[0]["content"].partition("\n")[2]) == calls(("f", {"a": 1}))
    assert messages[1] == {"role": "user", "content": "Result of f: 5"}


def test_arguments_that_are_no_json_are_retold_as_they_are() -> None:
    call = {"id": "x", "function": {"name": "f", "arguments": "{broken"}}
    (message,) = retold([{"role": "assistant", "content": None, "tool_calls": [call]}])

    assert json.loads(message["content"]) == calls(("f", "{broken"))
