"""What providers do that no request asks for, one habit a function: what the client has to hear all the same.

Simulators answer as they should. Here a provider answers in words of the test's own instead, where its file says that
it may: it breaks the schema, refuses what may be taken, says something under a name of its own.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters.simulator.envelope import error_body
from adapters.simulator.refusal import Refusals, RefusedError
from adapters.simulator.wire import Answer as Played
from adapters.simulator.wire import one_piece
from adapters.spec import ConditionKind, ErrorCaseSpec, ParamSpec, ProviderSpec, Support
from adapters.target import Target
from adapters.vocabulary import FinishReason, Patch
from tests.conformance.judging import told_in
from tests.conformance.message_uses import PAST_CALL
from tests.conformance.reading import read
from tests.conformance.rehearsal import Rehearsal, Script, Seen, has_tools
from tests.conformance.said import said
from tests.conformance.uses import CALL_LOOK, CITY, HELLO, LOOK, WAIT, conforms, say, schema
from tests.fakes.raw_client import Answer


@dataclass(frozen=True, slots=True)
class Stage:
    """One model, asked whole or streamed, while its provider follows a script."""

    rehearsed: Rehearsal
    model: str
    stream: bool

    @property
    def target(self) -> Target:
        return self.rehearsed.backend(self.model).target

    @property
    def spec(self) -> ProviderSpec:
        return self.target.spec

    @property
    def canonical(self) -> str:
        return self.spec.canonical(self.target.model)

    async def ask(self, script: Script, text: str = "Hi.", **members: Any) -> tuple[Answer, Seen]:
        """The answer of the gateway, and what the provider saw."""
        body = {"model": self.model, "messages": [say(text)], **members}
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        self.rehearsed.look(self.target.provider)
        self.rehearsed.upstream.script = script
        try:
            answer = await self.rehearsed.post("/v1/chat/completions", body)
        finally:
            self.rehearsed.upstream.script = None
        return answer, self.rehearsed.look(self.target.provider)

    async def hear(self, asked: Mapping[str, Any], *texts: str, **told: Any) -> Answer:
        """The gateway's answer to a request with the members *asked*, to which the provider has said so."""
        answer, _ = await self.ask(lambda body, _: said(body, *texts, **told), **asked)
        return answer

    def param(self, name: str) -> ParamSpec | None:
        return self.spec.params.get(name)

    def has_tools(self) -> bool:
        """Whether tools are sent as they are."""
        facts = self.param("tools")
        return has_tools(self.target) is not False and facts is not None and facts.held_by(self.canonical)

    def refuses(self, refusal: RefusedError) -> Played:
        """A refusal in the provider's own shape."""
        return one_piece(refusal.status, json_bytes(error_body(self.spec.errors.envelope, refusal)), {})

    def cases(self, patch: Patch) -> list[ErrorCaseSpec]:
        return [case for case in self.spec.errors.cases if case.patch is patch]


Habit = Callable[[Stage], Awaitable[None]]


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


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
        assert [_calls(choice) for choice in read(answer)["choices"]] == [["look"]], answer.body
        answer, seen = await stage.ask(script, CALL_LOOK, tools=[LOOK], n=2)
        assert [_calls(choice) for choice in read(answer)["choices"]] == [["look"]] * 2
        assert not any("tools" in body for body in seen.bodies)
        assert told_in(answer)["n"] == "split"
        answer, seen = await stage.ask(script, "Where is it?", tools=[LOOK], response_format=schema(CITY, strict=True))
        conforms(CITY)(read(answer))
        answer, seen = await stage.ask(script, messages=PAST_CALL, tools=[LOOK])
        assert answer.status == 200, answer.body


def _calls(choice: Mapping[str, Any]) -> list[str]:
    return [call["function"]["name"] for call in choice["message"].get("tool_calls") or ()]


async def keeps_a_call_to_itself(stage: Stage) -> None:
    """A call that the provider could not read is read out of its error."""
    for case in stage.cases(Patch.SALVAGE_TOOL_CALL):
        written = '<function=look>{"place": "here"}</function>'
        refusal = Refusals(stage.spec).by_case(case, RefusedError("no", 400, extra={"failed_generation": written}))
        answer, _ = await stage.ask(_refusing(stage, refusal, ["tools"]), CALL_LOOK, tools=[LOOK])
        assert answer.status == 200, answer.body
        assert _calls(read(answer)["choices"][0]) == ["look"]


async def ends_for_a_reason_of_its_own(stage: Stage) -> None:
    """A reason that OpenAI lacks is told as what it means; one that means a failure is a failure."""
    for word, meaning in stage.spec.finish_reason.nonstandard.items():
        answer = await stage.hear({}, HELLO, finish=word)
        heard = read(answer)
        if meaning is FinishReason.ERROR:
            assert "error" in heard
        else:
            assert heard["choices"][0]["finish_reason"] == meaning


async def ends_without_a_reason(stage: Stage) -> None:
    """A last piece without a reason is an end where the file says so, and else an answer that broke off."""
    answer, seen = await stage.ask(lambda body, _: said(body, HELLO, finish=None))
    meaning = stage.spec.finish_reason.missing
    if meaning is not None:
        assert read(answer)["choices"][0]["finish_reason"] == meaning
    elif seen.bodies[0].get("stream"):
        assert "error" in read(answer)


async def thinks_aloud(stage: Stage) -> None:
    """Reasoning between tags is reasoning, where the model is one that writes so."""
    tags = stage.spec.reasoning.tags_for(stage.canonical)
    for opening, closing in stage.spec.reasoning.tags.items():
        answer = await stage.hear({}, f"{opening}hm{closing}\n\n{HELLO}")
        message = read(answer)["choices"][0]["message"]
        if tags:
            assert message["content"] == HELLO
            assert message["reasoning_content"].strip() == "hm"
        else:
            assert message["content"].startswith(opening)


async def thinks_under_another_name(stage: Stage) -> None:
    """Reasoning comes by one name, whatever it was said under."""
    reasoning = stage.spec.reasoning
    fields = (reasoning.stream_field, reasoning.alt_stream_field) if stage.stream else ()
    fields = (*fields, reasoning.out_field, reasoning.alt_out_field, "message.reasoning")
    for field in dict.fromkeys(fields):
        if field is not None:
            name = field.partition(".")[2]
            answer = await stage.hear({}, HELLO, message={name: "hm"})
            assert read(answer)["choices"][0]["message"]["reasoning_content"] == "hm"


async def tells_of_itself(stage: Stage) -> None:
    """A provider's own members are nothing for clients."""
    streaming = stage.spec.streaming
    members = set(stage.spec.transport.private_members)
    members |= {(field or "").partition(".")[0] for field in (streaming.usage_field, streaming.error_field)} - {""}
    for member in members:
        answer = await stage.hear({}, HELLO, members={member: {"id": "1"}})
        assert member.encode() not in answer.body
        assert answer.status == 200


async def tells_usage_elsewhere(stage: Stage) -> None:
    """Usage is told where OpenAI tells it, wherever it came."""
    path = stage.spec.streaming.usage_field
    if path is None or not stage.stream:
        return
    head, _, name = path.partition(".")
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    answer = await stage.hear({}, HELLO, members={head: {name: usage}}, usage=None)
    assert read(answer)["usage"]["completion_tokens"] == 7


async def fails_in_a_field(stage: Stage) -> None:
    """An error inside an ordinary chunk is an error."""
    path = stage.spec.streaming.error_field
    if path is None or not stage.stream:
        return
    head, _, name = path.partition(".")
    answer = await stage.hear({}, HELLO, last={head: {name: "over capacity"}}, finish=None)
    assert "over capacity" in str(read(answer)["error"]["message"])


async def writes_a_call(stage: Stage) -> None:
    """A call that was written as text is a call, where the model is one that does so."""
    facts = stage.spec.messages.calls_in_content
    does = facts if isinstance(facts, bool) else stage.canonical.startswith(facts)
    if not stage.has_tools():
        return
    written = '{"name": "look", "arguments": {"place": "here"}}'
    answer = await stage.hear({"tools": [LOOK]}, written)
    if answer.status == 200:
        assert _calls(read(answer)["choices"][0]) == (["look"] if does else [])


HABITS: Final[Mapping[str, tuple[Habit, frozenset[str]]]] = {
    habit.__name__: (habit, frozenset(about))
    for habit, about in (
        (breaks_its_schema, ["response_format"]),
        (is_no_json, ["response_format"]),
        (calls_twice, ["parallel_tool_calls"]),
        (calls_nothing, ["tool_choice", "tools"]),
        (calls_in_one_choice_of_two, ["n"]),
        (refuses_what_may_be_taken, ["response_format", "stream"]),
        (has_no_tools_after_all, ["tools", "messages", "n", "response_format"]),
        (keeps_a_call_to_itself, ["tools"]),
        (ends_for_a_reason_of_its_own, ["finish_reason"]),
        (ends_without_a_reason, ["finish_reason"]),
        (thinks_aloud, ["reasoning"]),
        (thinks_under_another_name, ["reasoning"]),
        (tells_of_itself, ["private"]),
        (tells_usage_elsewhere, ["usage"]),
        (fails_in_a_field, ["error"]),
        (writes_a_call, ["tools"]),
    )
}
"""Each with what it is about."""
