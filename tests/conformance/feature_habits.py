"""What providers do to what was asked for: schemas that are broken, calls that are missing, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from adapters.simulator.refusal import Refusals, RefusedError
from adapters.simulator.wire import Answer as Played
from adapters.spec import ConditionKind, Support
from adapters.vocabulary import Patch
from tests.conformance.judging import told_in
from tests.conformance.message_uses import PAST_CALL
from tests.conformance.reading import read
from tests.conformance.rehearsal import Script
from tests.conformance.said import said
from tests.conformance.stage import Stage, called_names, json_bytes
from tests.conformance.uses import CALL_LOOK, CITY, LOOK, WAIT, conforms, schema


async def breaks_its_schema(stage: Stage) -> None:
    """An answer of the wrong form is no answer where the file does not promise the right one."""
    for wanted in (CITY, _COUNTED):
        answer = await stage.hear({"response_format": schema(wanted)}, '{"wrong": 1}')
        if answer.status == 400:
            return  # there are no schemas
        if _promised(stage, wanted):
            assert answer.status == 200, answer.body
        else:
            assert "schema_validation_failed" in answer.body.decode()


_COUNTED: Final = {
    "type": "object",
    "properties": {"city": {"type": "array", "items": {"type": "string", "pattern": "^a"}, "minItems": 2}},
    "required": ["city"],
    "additionalProperties": False,
}


def _promised(stage: Stage, wanted: Mapping[str, Any]) -> bool:
    facts = stage.param("response_format.json_schema")
    if facts is None:
        return True
    given_up = any(
        conflict.patch is Patch.EMULATE_SCHEMA
        and all(
            one.kind is not ConditionKind.MODEL or stage.canonical.startswith(one.values) for one in conflict.conditions
        )
        for conflict in stage.spec.conflicts
    )
    if given_up or facts.patch is Patch.VALIDATE_SCHEMA:
        return False
    if facts.patch is Patch.EMULATE_SCHEMA:
        unsure = facts.support is Support.CONDITIONAL and not facts.models
        return not unsure and (facts.held_by(stage.canonical) or facts.support is Support.RENAMED)
    words = facts.dialect.unknown_keywords if facts.dialect is not None else ()
    return not any(f'"{word}"'.encode() in json_bytes(wanted) for word in words)


async def is_no_json(stage: Stage) -> None:
    """The same of an answer that should be any JSON object."""
    facts = stage.param("response_format.json_object")
    answer = await stage.hear({"response_format": {"type": "json_object"}}, "no JSON")
    if facts is not None and facts.patch is Patch.EMULATE_SCHEMA and not facts.held_by(stage.canonical):
        assert "schema_validation_failed" in answer.body.decode()


async def calls_twice(stage: Stage) -> None:
    """One call at a time means one, where the file does not say that it is heeded."""
    facts = stage.param("parallel_tool_calls")
    if not stage.has_tools() or facts is None:
        return
    answer = await stage.hear({"tools": [LOOK, WAIT], "parallel_tool_calls": False}, calls=["look", "wait"])
    if answer.status == 400:
        return
    heeded = facts.support in (Support.NATIVE, Support.CONDITIONAL) and facts.patch is not Patch.KEEP_FIRST_CALL
    assert len(read(answer)["choices"][0]["message"]["tool_calls"]) == (2 if heeded else 1)
    assert ("parallel_tool_calls" in told_in(answer)) is not heeded


async def calls_nothing(stage: Stage) -> None:
    """A call that has to come is asked for once more where it did not, if nothing has been passed on yet."""
    arguments = '{"place": "here"}'
    named = {"type": "function", "function": {"name": "look"}}
    both = f'{{"tool_calls": [{{"name": "look", "arguments": {arguments}}}]}}'

    def script(body: Mapping[str, Any], _: Callable[[], Played]) -> Played:
        sole = '"tool_calls"' not in json.dumps(body).replace("\\", "")
        return said(body, "Let me think." if body.get("tools") else arguments if sole else both)

    for choice in ("required", named):
        answer, _ = await stage.ask(script, tools=[LOOK, WAIT], tool_choice=choice)
        if answer.status == 200 and not stage.stream:
            assert read(answer)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "look"
        else:
            assert answer.status in (200, 400), answer.body


async def calls_in_one_choice_of_two(stage: Stage) -> None:
    """What several calls have to do is done for each choice."""
    turns = iter(range(100))

    def script(body: Mapping[str, Any], _: Callable[[], Played]) -> Played:
        if not body.get("tools"):
            return said(body, *['{"city": "x"}'] * (body.get("n") or 1))
        if (body.get("n") or 1) > 1:
            return said(body, "no call", calls=["look"])
        return said(body, calls=["look"]) if next(turns) % 2 else said(body, "no call")

    if not stage.has_tools():
        return
    answer, _ = await stage.ask(script, tools=[LOOK], n=2, response_format=schema(CITY, strict=True))
    apart = any(
        conflict.patch is Patch.TWO_PHASE
        and conflict.only_after is None
        and conflict.when[1].startswith("response_format")
        for conflict in stage.spec.conflicts
    )
    if answer.status == 200 and apart:
        for choice in read(answer)["choices"]:
            if not choice["message"].get("tool_calls"):
                conforms(CITY)({"choices": [choice]})


def _refusing(stage: Stage, refusal: RefusedError, together: Collection[str]) -> Script:
    """Refuses what holds all these, and messages of calls where tools are not taken."""

    def script(body: Mapping[str, Any], play: Callable[[], Played]) -> Played:
        called = "tools" in together and any(one.get("tool_calls") for one in body["messages"])
        return stage.refuses(refusal) if called or all(body.get(name) for name in together) else play()

    return script


async def refuses_what_may_be_taken(stage: Stage) -> None:
    """What is done after a refusal helps."""
    for conflict in stage.spec.conflicts:
        if conflict.only_after is None:
            continue
        words = {one.param for one in conflict.conditions}
        refusal = Refusals(stage.spec).invalid("no", status=conflict.only_after)
        script = _refusing(stage, refusal, words)
        if "stream" in words and not stage.stream:
            continue
        members = {"tools": [LOOK]} if "tools" in words else {}
        answer, seen = await stage.ask(script, "Where is it?", **members, response_format=schema(CITY, strict=True))
        assert answer.status == 200, answer.body
        conforms(CITY)(read(answer))
        assert not all(seen.bodies[-1].get(name) for name in words)


async def has_no_tools_after_all(stage: Stage) -> None:
    """A model that turns out to have no tools calls them all the same: from then on they are asked for in words."""
    for case in stage.cases(Patch.EMULATE_TOOLS):
        script = _refusing(stage, Refusals(stage.spec).by_case(case, RefusedError("no", 400)), ["tools"])
        answer, _ = await stage.ask(script, CALL_LOOK, tools=[LOOK])
        assert [called_names(choice) for choice in read(answer)["choices"]] == [["look"]], answer.body
        answer, seen = await stage.ask(script, CALL_LOOK, tools=[LOOK], n=2)
        assert [called_names(choice) for choice in read(answer)["choices"]] == [["look"]] * 2
        assert not any("tools" in body for body in seen.bodies)
        assert told_in(answer)["n"] == "split"
        answer, seen = await stage.ask(script, "Where is it?", tools=[LOOK], response_format=schema(CITY, strict=True))
        conforms(CITY)(read(answer))
        answer, seen = await stage.ask(script, messages=PAST_CALL, tools=[LOOK])
        assert answer.status == 200, answer.body


async def keeps_a_call_to_itself(stage: Stage) -> None:
    """A call that the provider could not read is read out of its error."""
    for case in stage.cases(Patch.SALVAGE_TOOL_CALL):
        written = '<function=look>{"place": "here"}</function>'
        refusal = Refusals(stage.spec).by_case(case, RefusedError("no", 400, extra={"failed_generation": written}))
        answer, _ = await stage.ask(_refusing(stage, refusal, ["tools"]), CALL_LOOK, tools=[LOOK])
        assert answer.status == 200, answer.body
        assert called_names(read(answer)["choices"][0]) == ["look"]


async def writes_a_call(stage: Stage) -> None:
    """A call that was written as text is a call, where the model is one that does so."""
    facts = stage.spec.messages.calls_in_content
    does = facts if isinstance(facts, bool) else stage.canonical.startswith(facts)
    if not stage.has_tools():
        return
    written = '{"name": "look", "arguments": {"place": "here"}}'
    answer = await stage.hear({"tools": [LOOK]}, written)
    if answer.status == 200:
        assert called_names(read(answer)["choices"][0]) == (["look"] if does else [])
