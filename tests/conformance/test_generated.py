"""Every provider with every parameter, streamed and not: native, patched or refused, as its file has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import pytest
import pytest_asyncio

from adapters.message_facts import REASONING_FIELDS
from adapters.registry import load_spec, preset_types, provider_types
from adapters.spec import ProviderSpec
from adapters.types import Operation
from adapters.vocabulary import Patch
from tests.conformance.fates import Fate, fates
from tests.conformance.reading import read
from tests.conformance.rehearsal import Rehearsal, Seen, rehearsal
from tests.conformance.uses import MESSAGES, RARE, USES, Use
from tests.fakes.raw_client import Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")


def chats(kinds: list[str]) -> list[str]:
    """Those of *kinds* that chat."""
    return [
        kind
        for kind in kinds
        if (endpoint := load_spec(kind).endpoints.get(Operation.CHAT)) is not None and endpoint.available
    ]


PROVIDERS = chats(provider_types())
MODELS: dict[str, tuple[str, str | None]] = {kind: (kind, None) for kind in PROVIDERS}
OTHERS: dict[str, tuple[str, str | None]] = {kind: (kind, None) for kind in chats(preset_types())} | {
    f"{kind}: {model.id}": (kind, model.id) for kind in PROVIDERS for model in load_spec(kind).models if model.offered
}
"""Presets, and every model of the hosted providers."""
EVERY: dict[str, tuple[str, str | None]] = {**MODELS, **OTHERS}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everyday() -> AsyncIterator[Rehearsal]:
    async with rehearsal(MODELS) as rehearsed:
        yield rehearsed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rest() -> AsyncIterator[Rehearsal]:
    async with rehearsal(EVERY) as rehearsed:
        yield rehearsed


async def ask(rehearsed: Rehearsal, model: str, use: Use, stream: bool) -> tuple[Answer, Seen]:
    """The answer to *use*, and what the provider saw of it."""
    provider = rehearsed.backend(model).target.provider
    rehearsed.look(provider)
    answer = await rehearsed.post("/v1/chat/completions", {"model": model, **use.body(stream)})
    return answer, rehearsed.look(provider)


# A number of log probabilities is refused by the name that OpenAI has for it.
_IN_OTHER_WORDS: Final = {"logprobs": ("top_logprobs",)}


def judge(rehearsed: Rehearsal, model: str, use: Use, answer: Answer, seen: Seen) -> None:
    """Whether the parameter had one of the fates that its provider's file lets expect."""
    target = rehearsed.backend(model).target
    expected = fates(rehearsed.simulators[target.provider], target.model, use)
    assert seen.refusals == []
    if answer.status == 400:
        assert Fate.REFUSED in expected, answer.body
        assert answer.error["code"] == "unsupported_parameter"
        known = {use.head, *use.members, *_IN_OTHER_WORDS.get(use.head, ())}
        assert str(answer.error["param"]).partition(".")[0].partition("[")[0] in known
        assert seen.bodies == []
        return
    assert answer.status == 200, answer.body
    for body in seen.bodies:
        check_body(target.spec, use, body)
    told = dict(one.split("=") for one in answer.headers.get("x-gateway-adjusted", "").split(", ") if one)
    fate = fate_of(use, told, seen)
    assert fate in expected or (fate is Fate.NATIVE and Fate.IGNORED in expected), (fate, expected, told)
    if fate in (Fate.NATIVE, Fate.PATCHED) and Fate.IGNORED not in expected:
        use.effect(read(answer))


def check_body(spec: ProviderSpec, use: Use, body: Any) -> None:
    """Whether *body* holds what the file wants in any case, and nothing that is out of place."""
    wanted = {**spec.defaults, **spec.context.ask_for_error}
    assert all(body.get(name) == value for name, value in wanted.items() if name not in use.members), body
    limits = {"max_tokens", "max_completion_tokens"} & body.keys()
    assert len(limits) < 2
    assert limits or not any(facts.patch is Patch.SEND_LIMIT for facts in spec.params.values())
    assert body.get("tools") or not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()
    replay = spec.messages.assistant_reasoning_in
    if replay is not None:
        strange = REASONING_FIELDS - {replay.field, replay.alias}
        assert not any(strange & message.keys() for message in body["messages"])


def fate_of(use: Use, told: dict[str, str], seen: Seen) -> Fate:
    action = told.get(use.head)
    if action is None and use.head in ("tool_choice", "parallel_tool_calls"):
        action = told.get("tools")  # where tools are emulated, so is all that is said of them
    if action == "dropped":
        assert all(use.head not in body for body in seen.bodies)
        return Fate.DROPPED
    if action is not None or use.head in ("stream_options", "messages"):
        return Fate.PATCHED
    if use.name not in _UNTOLD and use.head in use.members:
        # Nothing was said of a change, so there was none.
        assert any(_same(use.members[use.head], body.get(use.head)) for body in seen.bodies), seen.bodies
    return Fate.NATIVE


_UNTOLD = (
    "what means off", "plain text", "no tool", "both limits", "all of top_p", "parallel_tool_calls",
    "no log probabilities by number", "a choice without tools", "a legacy schema in a tool", "one call without tools",
    "an empty list of tools", "nothing but an empty list of tools", "none of top_p",
)  # fmt: skip
"""Uses of which something may be left out, or put otherwise, without a word: it means the same."""


def _same(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, str) and isinstance(found, list):
        return found == [wanted]
    return bool(wanted == found)


def judge_messages(rehearsed: Rehearsal, model: str, use: Use, answer: Answer, seen: Seen) -> None:
    """As `judge`; messages are never refused, but for the tools beside them."""
    if "tools" in use.members and answer.status == 400:
        judge(rehearsed, model, replace(use, param="tools"), answer, seen)
        return
    assert answer.status == 200, answer.body
    judge(rehearsed, model, use, answer, seen)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_parameter_at_a_provider(everyday: Rehearsal, provider: str, use: Use) -> None:
    for stream in (False, True):
        answer, seen = await ask(everyday, provider, use, stream)
        judge(everyday, provider, use, answer, seen)


@pytest.mark.parametrize("use", MESSAGES, ids=lambda use: use.name)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_messages_at_a_provider(everyday: Rehearsal, provider: str, use: Use) -> None:
    for stream in (False, True):
        answer, seen = await ask(everyday, provider, use, stream)
        judge_messages(everyday, provider, use, answer, seen)


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", EVERY)
async def test_every_request_at_every_model(rest: Rehearsal, model: str, stream: bool) -> None:
    wrong: dict[str, str] = {}
    for use in (*USES, *RARE, *MESSAGES):
        answer, seen = await ask(rest, model, use, stream)
        try:
            (judge_messages if use in MESSAGES else judge)(rest, model, use, answer, seen)
        except AssertionError as error:
            wrong[use.name] = str(error)
    assert wrong == {}
