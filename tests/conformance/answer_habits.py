"""How providers tell an answer: ends, reasoning, and members under names of their own."""

from __future__ import annotations

from adapters.vocabulary import FinishReason
from tests.conformance.reading import read
from tests.conformance.said import said
from tests.conformance.stage import Stage
from tests.conformance.uses import HELLO


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
