"""For each parameter of a chat a request that uses it, and what its answer has to show where it is honoured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HELLO: Final = "Hello from the simulated model."
Read = Mapping[str, Any]
"""An answer as `reading.read` gives it."""
Effect = Callable[[Read], None]


def say(text: str) -> dict[str, Any]:
    """A user's message that has the simulated model do as it says."""
    return {"role": "user", "content": text}


def function(name: str, *required: str, **members: Any) -> dict[str, Any]:
    """A tool whose arguments are texts."""
    properties = {one: {"type": "string"} for one in required}
    parameters = {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }  # fmt: skip
    return {"type": "function", "function": {"name": name, "parameters": parameters, **members}}


LOOK: Final = function("look", "place")
WAIT: Final = function("wait")
CALL_LOOK: Final = 'Call tool look with {"place": "here"}'
CITY: Final = {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False,
}  # fmt: skip
LOOSE: Final = {
    "type": "object",
    "properties": {
        "city": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 0}, "minItems": 0},
        "where": {"$ref": "#/definitions/where"},
    },
    "definitions": {"where": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    "required": ["city", "tags", "where"],
}
"""A schema with what several providers do not take."""


def schema(wanted: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """The format of an answer that conforms to *wanted*."""
    return {"type": "json_schema", "json_schema": {"name": "wanted", "schema": wanted, **members}}


# What an answer shows


def shows_nothing(read: Read) -> None:
    """It is an answer, and no more can be told from it."""
    assert read["choices"]
    assert all(choice["finish_reason"] for choice in read["choices"])


def says(text: str, finish: str = "stop") -> Effect:
    def check(read: Read) -> None:
        assert read["choices"][0]["message"]["content"] == text
        assert read["choices"][0]["finish_reason"] == finish

    return check


def has_choices(number: int) -> Effect:
    def check(read: Read) -> None:
        assert [choice["index"] for choice in read["choices"]] == list(range(number))
        assert all(choice["message"]["content"] for choice in read["choices"])
        if "usage" in read:
            assert read["usage"]["completion_tokens"] >= number

    return check


def is_cut_at(most: int) -> Effect:
    def check(read: Read) -> None:
        assert read["choices"][0]["finish_reason"] == "length"
        assert len(read["choices"][0]["message"]["content"].split()) <= most

    return check


def calls(*names: str) -> Effect:
    """Exactly these tools are called, with arguments that are JSON objects."""

    def check(read: Read) -> None:
        choice = read["choices"][0]
        found = choice["message"].get("tool_calls") or []
        assert [call["function"]["name"] for call in found] == list(names)
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in found)
        assert all(call["id"] and call["type"] == "function" for call in found)
        assert choice["finish_reason"] == ("tool_calls" if names else "stop")

    return check


def conforms(wanted: Mapping[str, Any]) -> Effect:
    def check(read: Read) -> None:
        # The library is loaded where it is needed; a worker that runs other tests does without.
        from jsonschema_rs import validator_for

        value = json.loads(read["choices"][0]["message"]["content"])
        assert validator_for(dict(wanted)).is_valid(value), value

    return check


def has_logprobs(alternatives: int) -> Effect:
    def check(read: Read) -> None:
        rows = read["choices"][0]["logprobs"]["content"]
        assert rows
        for row in rows:
            assert isinstance(row["token"], str)
            assert isinstance(row["logprob"], (int, float))
            assert isinstance(row["bytes"], list)
            assert len(row["top_logprobs"]) <= alternatives
        assert not alternatives or any(row["top_logprobs"] for row in rows)

    return check


def has_usage(read: Read) -> None:
    assert read["usage"]["prompt_tokens"] > 0
    assert read["usage"]["completion_tokens"] > 0


@dataclass(frozen=True, slots=True)
class Use:
    """A request that uses a parameter."""

    name: str
    param: str
    """The parameter as provider files call it, dotted or not."""
    members: Mapping[str, Any] = field(default_factory=dict)
    effect: Effect = shows_nothing
    """Holds where the parameter is honoured, in whatever way."""
    text: str = "Say exactly: " + HELLO
    streams: bool = True

    @property
    def head(self) -> str:
        """The member of the request that holds it."""
        return self.param.partition(".")[0]

    def body(self, stream: bool) -> dict[str, Any]:
        """The request without its model."""
        made: dict[str, Any] = {"messages": [say(self.text)], **self.members}
        if stream:
            made |= {"stream": True, "stream_options": {"include_usage": True}}
        return made


_NAMED: Final = {"type": "function", "function": {"name": "look"}}
_FIVE: Final = ["one", "two", "three", "four", "END"]

USES: Final = (
    Use("frequency_penalty", "frequency_penalty", {"frequency_penalty": 0.5}),
    Use("presence_penalty", "presence_penalty", {"presence_penalty": -0.5}),
    Use("logit_bias", "logit_bias", {"logit_bias": {"5": 1}}),
    Use("logprobs", "logprobs", {"logprobs": True}, has_logprobs(0)),
    Use("top_logprobs", "top_logprobs", {"logprobs": True, "top_logprobs": 2}, has_logprobs(2)),
    Use("many top_logprobs", "top_logprobs", {"logprobs": True, "top_logprobs": 20}, has_logprobs(20)),
    Use("max_completion_tokens", "max_completion_tokens", {"max_completion_tokens": 5}, is_cut_at(5), "Count to 50"),
    Use("max_tokens", "max_tokens", {"max_tokens": 5}, is_cut_at(5), "Count to 50"),
    Use("both limits", "max_completion_tokens", {"max_completion_tokens": 5, "max_tokens": 9}, is_cut_at(5),
        "Count to 50"),
    Use("metadata", "metadata", {"metadata": {"a": "b"}}),
    Use("modalities", "modalities", {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}),
    Use("n", "n", {"n": 2}, has_choices(2)),
    Use("many choices", "n", {"n": 5, "seed": 3}, has_choices(5)),
    Use("parallel_tool_calls", "parallel_tool_calls", {"tools": [LOOK, WAIT], "parallel_tool_calls": False},
        calls("look"), f"{CALL_LOOK} Call tool wait with {{}}"),
    Use("prediction", "prediction", {"prediction": {"type": "content", "content": "a"}}),
    Use("prompt_cache_key", "prompt_cache_key", {"prompt_cache_key": "k"}),
    Use("low effort", "reasoning_effort", {"reasoning_effort": "low"}),
    Use("least effort", "reasoning_effort", {"reasoning_effort": "minimal"}),
    Use("no effort", "reasoning_effort", {"reasoning_effort": "none"}),
    Use("most effort", "reasoning_effort", {"reasoning_effort": "xhigh"}),
    Use("plain text", "response_format.text", {"response_format": {"type": "text"}}, says(HELLO)),
    Use("json_object", "response_format.json_object", {"response_format": {"type": "json_object"}},
        conforms({"type": "object"}), "Answer with a JSON object."),
    Use("json_schema", "response_format.json_schema", {"response_format": schema(CITY, strict=True)},
        conforms(CITY), "Where is it?"),
    Use("lax json_schema", "response_format.json_schema", {"response_format": schema(LOOSE)},
        conforms(LOOSE), "Where is it?"),
    Use("strict lax json_schema", "response_format.json_schema", {"response_format": schema(LOOSE, strict=True)},
        conforms(LOOSE), "Where is it?"),
    Use("safety_identifier", "safety_identifier", {"safety_identifier": "s"}),
    Use("seed", "seed", {"seed": 7}),
    Use("flex tier", "service_tier", {"service_tier": "flex"}),
    Use("priority tier", "service_tier", {"service_tier": "priority"}),
    Use("stop", "stop", {"stop": ["END"]}, says("Here it "), "Say exactly: Here it ENDs."),
    Use("stop as a text", "stop", {"stop": "END"}, says("Here it "), "Say exactly: Here it ENDs."),
    Use("five stops", "stop", {"stop": _FIVE}, says("Here it "), "Say exactly: Here it ENDs."),
    Use("store", "store", {"store": True}),
    Use("usage", "stream_options.include_usage", {}, has_usage),
    Use("temperature", "temperature", {"temperature": 0.5}),
    Use("high temperature", "temperature", {"temperature": 1.8}),
    Use("no temperature", "temperature", {"temperature": 0}),
    Use("top_p", "top_p", {"top_p": 0.5}),
    Use("all of top_p", "top_p", {"top_p": 1}),
    Use("tools", "tools", {"tools": [LOOK, WAIT]}, calls("look"), CALL_LOOK),
    Use("strict tools", "tools", {"tools": [function("look", "place", strict=True), WAIT]}, calls("look"), CALL_LOOK),
    Use("tools not called", "tools", {"tools": [LOOK]}, says(HELLO)),
    Use("two calls", "tools", {"tools": [LOOK, WAIT]}, calls("look", "wait"), f"{CALL_LOOK} Call tool wait with {{}}"),
    Use("a named tool", "tool_choice", {"tools": [WAIT, LOOK], "tool_choice": _NAMED}, calls("look"), "Where is it?"),
    Use("a required tool", "tool_choice", {"tools": [LOOK], "tool_choice": "required"}, calls("look"),
        "Where is it?"),
    Use("no tool", "tool_choice", {"tools": [LOOK], "tool_choice": "none"}, says(HELLO)),
    Use("allowed tools", "tool_choice",
        {"tools": [WAIT, LOOK], "tool_choice": {"type": "allowed_tools", "allowed_tools": {
            "mode": "required", "tools": [{"type": "function", "function": {"name": "look"}}]}}},
        calls("look"), "Where is it?"),
    Use("tools and a schema", "tools", {"tools": [LOOK], "response_format": schema(CITY, strict=True)},
        conforms(CITY), "Where is it?"),
    Use("a call beside a schema", "tools", {"tools": [LOOK], "response_format": schema(CITY, strict=True)},
        calls("look"), CALL_LOOK),
    Use("tools and JSON", "tools", {"tools": [LOOK], "response_format": {"type": "json_object"}},
        conforms({"type": "object"}), "Answer with a JSON object."),
    Use("choices of calls", "n", {"tools": [LOOK], "n": 2}, calls("look"), CALL_LOOK),
    Use("choices and stops", "n", {"n": 2, "stop": _FIVE}, says("Here it "), "Say exactly: Here it ENDs."),
    Use("user", "user", {"user": "u"}),
    Use("verbosity", "verbosity", {"verbosity": "low"}),
    Use("web_search_options", "web_search_options", {"web_search_options": {"search_context_size": "low"}}),
    Use("what means off", "n",
        {"n": 1, "logprobs": False, "top_logprobs": 0, "logit_bias": {}, "tools": [], "parallel_tool_calls": True,
         "frequency_penalty": 0, "presence_penalty": 0.0, "store": False, "stop": [], "modalities": ["text"],
         "user": None, "seed": None, "metadata": None, "response_format": {"type": "text"}}, says(HELLO)),
)  # fmt: skip
