"""Reports about JSON schemas that a server takes in part: what it names goes, and the answer is checked anyway."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.reports.field import Field, Json, heard, in_front_of, saying

TAGS: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1, "maxItems": 2},
        "size": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9},
        "site": {"type": "object", "properties": {"title": {"type": "string"}}},
    },
    "required": ["tags"],
}
AS_TAGS: Json = {"type": "json_schema", "json_schema": {"name": "tags", "strict": True, "schema": TAGS}}
TAGGER: Json = {"type": "function", "function": {"name": "tag", "description": "Tags", "parameters": TAGS}}
GOOD, BAD = '{"tags":["a:b"]}', '{"tags":[]}'
Refuses = Callable[[str], bool]


def mentions(*words: str) -> Refuses:
    return lambda schema: any(f'"{word}"' in schema for word in words)


def is_open(schema: str) -> bool:
    return '"additionalProperties": false' not in schema


def server(refuses: Refuses, told: str, *answers: str) -> Callable[[RecordedRequest], Script]:
    """Refuses schemas in these words, and gives one of its *answers* after another to the rest."""
    left = list(answers)

    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        asked = json.dumps([body.get("response_format"), body.get("tools")])
        if refuses(asked):
            return [refusal(400, told)]
        return [saying({"content": left.pop(0) if len(left) > 1 else left[0]})]

    return script


def schema_sent(field: Field) -> Json:
    sent = field.sent[-1]
    if "tools" in sent:
        found: Json = sent["tools"][0]["function"]["parameters"]
    else:
        found = sent["response_format"]["json_schema"]["schema"]
    return found


FORMATS: list[Any] = [
    pytest.param(mentions("minItems"), "Unsupported JSON schema fields: {'minItems', 'items'}",
                 id="musistudio/claude-code-router#708"),
    pytest.param(mentions("minItems", "maxItems"),
                 "invalid schema for response format: response_format/json_schema/next_step: minItems is not supported",
                 id="i-am-bee/beeai-framework#1215"),
    pytest.param(mentions("maxItems", "format"), "Invalid schema for response_format 'tags': In context=('properties', "
                 "'tags'), 'maxItems' is not permitted. 'format' is not permitted.", id="elizaOS/eliza#11153"),
    pytest.param(is_open, "invalid JSON schema for response_format: 'answer': additionalProperties:false must be set "
                 "on every object", id="Meridiona/meridian#811"),
    pytest.param(lambda schema: '"required": ["tags", "size", "site"]' not in schema, "Invalid schema for "
                 "response_format 'tags': In context=(), 'required' is required to be supplied and to be an array "
                 "including every key in properties. Missing 'size'.", id="juspay/neurolink#1691"),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("refuses", "told"), FORMATS)
async def test_a_schema_is_put_as_the_server_takes_it_from_then_on(refuses: Refuses, told: str, streamed: bool) -> None:
    async with in_front_of(server(refuses, told, GOOD)) as field:
        for _ in range(2):
            answer = await field.ask(response_format=AS_TAGS, stream=streamed)
            assert answer.status == 200, answer.body
            text = heard(answer).content if streamed else answer.json["choices"][0]["message"]["content"]
            assert json.loads(text) == json.loads(GOOD)

        assert len(field.sent) == 3
        assert schema_sent(field)["properties"]["site"]["properties"]["title"] == {"type": "string"}
    assert "response_format=rewritten" in answer.headers["x-gateway-adjusted"]


async def test_an_answer_still_has_to_keep_to_the_clients_own_schema() -> None:
    told = "Unsupported JSON schema fields: {'minItems'}"
    async with in_front_of(server(mentions("minItems"), told, BAD, GOOD)) as field:
        answer = await field.ask(response_format=AS_TAGS)

        assert len(field.sent) == 3  # refused, not good enough, good
    assert json.loads(answer.json["choices"][0]["message"]["content"]) == json.loads(GOOD)


TOOLS: list[Any] = [
    pytest.param(mentions("exclusiveMinimum", "maximum"), "Invalid JSON payload received. Unknown name "
                 "\"exclusiveMinimum\" at 'tools[0].function_declarations[0].parameters.properties[1].value': Cannot "
                 "find field.", id="pizza-bot-app/pizza-bot#62"),
    pytest.param(mentions("$schema"), "Invalid JSON payload received. Unknown name \"$schema\" at "
                 "'tools[0].function_declarations[0].parameters': Cannot find field.", id="decolua/9router#3018"),
    pytest.param(mentions("format"), "Invalid schema for function 'tag': In context=('properties', 'tags', 'items'), "
                 "'uri' is not a valid format.", id="can1357/oh-my-pi#206"),
]  # fmt: skip


@pytest.mark.parametrize(("refuses", "told"), TOOLS)
async def test_the_schema_of_a_tool_goes_without_what_the_server_does_not_know(refuses: Refuses, told: str) -> None:
    async with in_front_of(server(refuses, told, "hello")) as field:
        for _ in range(2):
            answer = await field.ask(tools=[TAGGER])
            assert answer.status == 200, answer.body

        assert len(field.sent) == 3
        properties = schema_sent(field)["properties"]
    assert properties.keys() == TAGS["properties"].keys()
    assert properties["site"] == TAGS["properties"]["site"]


KEPT: list[Any] = [
    pytest.param({"response_format": AS_TAGS}, "Invalid schema for response_format: missing additionalProperties",
                 id="Wei-Shaw/sub2api#4176"),
    pytest.param({"response_format": AS_TAGS}, "Invalid schema for response_format: 'tags' is not of type 'object'",
                 id="nothing that could be left out"),
    pytest.param({"tools": [TAGGER]}, "Invalid schema for function 'tag': pattern is not a regular expression",
                 id="a word of the sentence"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "told"), KEPT)
async def test_a_schema_that_is_wrong_is_told_to_be_at_once(asked: Json, told: str) -> None:
    async with in_front_of([refusal(400, told)]) as field:
        answer = await field.ask(**asked)

        assert (answer.status, len(field.sent)) == (400, 1)
    assert told in answer.error["message"]
