"""Asks a rehearsed gateway, and judges what came of it: at the provider, in the answer, and in what is told of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from adapters.spec import Support
from adapters.target import Target
from adapters.vocabulary import PartSupport, Patch
from tests.conformance.bodies import check_body
from tests.conformance.fate_rules import Fate
from tests.conformance.fates import fates, holding
from tests.conformance.message_uses import MESSAGES, check_messages
from tests.conformance.rare_uses import ADDRESS, BEYOND, INVALID, MANY_TOOLS, NO_CONTENT, NO_ROLE
from tests.conformance.reading import read
from tests.conformance.rehearsal import Rehearsal, Seen
from tests.conformance.uses import Use
from tests.fakes.raw_client import Answer

OPENAI_PARTS: Final = frozenset(("text", "image_url", "input_audio", "file", "refusal"))
_IN_OTHER_WORDS: Final = {"logprobs": ("top_logprobs",)}
"""A number of log probabilities is refused by the name that OpenAI has for it."""
_SAID_OTHERWISE: Final = (
    "no tool", "no tool though one is asked for", "both limits", "parallel_tool_calls", "none of top_p",
    "a legacy schema in a tool",
)  # fmt: skip
"""Uses of which something may be left out, or put otherwise, without a word: it means the same."""
_MEANS_NOTHING: Final = (
    "what means off", "plain text", "all of top_p", "no log probabilities by number", "a choice without tools",
    "one call without tools", "an empty list of tools", "nothing but an empty list of tools",
)  # fmt: skip
"""Uses that ask for nothing, so that nothing is told of them either."""


def _judge_misuse(target: Target, use: Use, answer: Answer, seen: Seen) -> None:
    parts = target.spec.messages.content_parts
    if use.name == ADDRESS:
        # Where an image has to be fetched, it is not fetched from here.
        fetched = parts.get("image_url") is PartSupport.BYTES
        assert not fetched or (answer.status, seen.bodies) == (400, [])
        return
    assert answer.status == 400, answer.body
    if use.name in (NO_ROLE, NO_CONTENT):
        assert not target.spec.messages.unchecked or (answer.error["code"], seen.bodies) == ("invalid_value", [])
    elif use.head == "messages":
        known = target.spec.transport.unknown_body_fields.nested or not parts.keys() >= OPENAI_PARTS
        assert not known or (answer.error["code"], seen.bodies) == ("unsupported_parameter", [])


def _renamed(target: Target, name: str) -> bool:
    facts = target.spec.params.get(name)
    return facts is not None and facts.support is Support.RENAMED


async def ask(rehearsed: Rehearsal, model: str, use: Use, stream: bool, *headers: str) -> tuple[Answer, Seen]:
    """The answer to *use*, and what the provider saw of it."""
    provider = rehearsed.backend(model).target.provider
    rehearsed.look(provider)
    answer = await rehearsed.post("/v1/chat/completions", {"model": model, **use.body(stream)}, *headers)
    return answer, rehearsed.look(provider)


def judge(rehearsed: Rehearsal, model: str, use: Use, answer: Answer, seen: Seen, *, dropping: bool = False) -> None:
    """Whether all is as the provider's file lets expect; *dropping*: the client would rather lose than be refused."""
    if use in INVALID:
        if not dropping:
            _judge_invalid(rehearsed, model, use, answer, seen)
    elif use in MESSAGES and not ("tools" in use.members and answer.status == 400):
        assert answer.status == 200, answer.body
        _judge(rehearsed, model, use, answer, seen, dropping)
        check_messages(rehearsed.backend(model).target, use, seen.bodies, answer.headers.get("x-gateway-adjusted", ""))
    else:
        _judge(rehearsed, model, replace(use, param="tools") if use in MESSAGES else use, answer, seen, dropping)


def told_in(answer: Answer) -> dict[str, str]:
    """What is told of the request's parameters."""
    return dict(one.split("=") for one in answer.headers.get("x-gateway-adjusted", "").split(", ") if one)


def _judge(rehearsed: Rehearsal, model: str, use: Use, answer: Answer, seen: Seen, dropping: bool) -> None:
    target = rehearsed.backend(model).target
    if BEYOND in use.members.values() and target.max_output_tokens is None and target.context_window is None:
        return  # the provider alone knows
    tools = target.spec.params.get("tools")
    if use.name == MANY_TOOLS and (tools is None or tools.max is None):
        return  # in words they would be more than a prompt holds
    simulator = rehearsed.simulators[target.provider]
    expected = fates(simulator, target, use)
    assert seen.refusals == []
    for body in seen.bodies:
        check_body(target, use, body)
    if answer.status == 400:
        assert Fate.REFUSED in expected, answer.body
        assert answer.error["code"] == "unsupported_parameter"
        known = {use.head, *use.members, *_IN_OTHER_WORDS.get(use.head, ())}
        assert str(answer.error["param"]).partition(".")[0].partition("[")[0] in known
        assert seen.bodies == []
        return
    assert answer.status == 200, answer.body
    progress = target.spec.streaming.progress_field
    assert progress is None or progress.encode() not in answer.body
    told = told_in(answer)
    fate = _fate_of(use, told, seen)
    assert not dropping or use.members.get("tool_choice") != "none" or "tools" not in told
    if dropping and expected != {Fate.NATIVE}:
        # What is emulated or refused otherwise is left out, and told; but what means the same is done as ever.
        gone = "dropped" in told.values()  # and with it perhaps the reason for another way
        assert fate is not Fate.NATIVE or gone or expected & {Fate.NATIVE, Fate.IGNORED}, (expected, told)
        return
    assert fate in expected or (fate is Fate.NATIVE and Fate.IGNORED in expected), (fate, expected, told)
    if use.name in _MEANS_NOTHING:
        assert not told.keys() & use.members.keys(), told
    streamed = answer.headers["content-type"].startswith("text/event-stream")
    asked = {**use.members, "stream": streamed}
    patches = {conflict.patch for conflict in holding(simulator, target.model, asked)}
    whole = Patch.TWO_PHASE in patches or told.get("response_format") == "emulated"
    if Patch.FAKE_STREAM in patches and not whole:
        assert told.get("stream") == "emulated"
    if fate in (Fate.NATIVE, Fate.PATCHED) and Fate.IGNORED not in expected:
        use.effect(read(answer))


def _fate_of(use: Use, told: Mapping[str, str], seen: Seen) -> Fate:
    action = told.get(use.head)
    if action is None and use.head in ("tool_choice", "parallel_tool_calls"):
        action = told.get("tools")  # where tools are emulated, so is all that is said of them
    if action == "dropped":
        assert not any(_same(use.members.get(use.head), body.get(use.head)) for body in seen.bodies)
        return Fate.DROPPED
    if action is not None or use.head in ("stream_options", "messages"):
        return Fate.PATCHED
    if use.name not in (*_SAID_OTHERWISE, *_MEANS_NOTHING) and use.head in use.members:
        # Nothing was said of a change, so there was none.
        assert any(_same(use.members[use.head], body.get(use.head)) for body in seen.bodies), seen.bodies
    return Fate.NATIVE


def _same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, str) and isinstance(found, list):
        return found == [wanted]
    return json.dumps(wanted) == json.dumps(found)


def _judge_invalid(rehearsed: Rehearsal, model: str, use: Use, answer: Answer, seen: Seen) -> None:
    """What OpenAI refuses is refused, without being sent where the gateway can tell; or it is made valid."""
    target = rehearsed.backend(model).target
    simulator = rehearsed.simulators[target.provider]
    members = {"logprobs": True, **use.members} if use.head == "top_logprobs" else use.members
    together = {conflict.patch for conflict in holding(simulator, target.model, members)}
    alone = {conflict.patch for conflict in holding(simulator, target.model, use.members)}
    if use.head == "tool_choice":
        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_value", "tool_choice")
        assert seen.bodies == []
    elif use.head in ("max_tokens", "messages"):
        _judge_misuse(target, use, answer, seen)
    elif fates(simulator, target, use) == {Fate.REFUSED}:
        assert (answer.status, answer.error["code"], seen.bodies) == (400, "unsupported_parameter", [])
    elif use.head == "top_logprobs" and _renamed(target, "top_logprobs"):
        assert told_in(answer)["top_logprobs"] == "renamed"
        use.effect(read(answer))
    elif Patch.SET_LOGPROBS in alone and Patch.ERROR not in together:
        assert (answer.status, seen.refusals) == (200, []), answer.body
        use.effect(read(answer))
    elif fates(simulator, target, use) == {Fate.NATIVE}:
        assert (answer.status, seen.refusals) == (200, [])
