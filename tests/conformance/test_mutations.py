"""Taking out any one patch makes some request fail: none is there for nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pytest

from tests.conformance.mutations import Mutation, mutations
from tests.conformance.rehearsal import Rehearsal, rehearsal
from tests.conformance.test_generated import MODELS, ask, judge, judge_messages
from tests.conformance.uses import MESSAGES, RARE, USES, Use

_TWICE: Final = "the same is done by another patch"
_OWN: Final = "about parameters of the engine's own, which no request here has"
_SHAPED: Final = "a shape sees to it before"
_EASY: Final = "a simulated model does as it should without"
_SURVIVORS: Final[Mapping[str, str]] = {
    "tools: OrderlyTools": _TWICE,
    "parallel_tool_calls: OrderlyTools": _TWICE,
    "tool_choice: OrderlyTools": _TWICE,
    "tool_choice: _Where": _TWICE,
    "max_completion_tokens: OutputLimit": _TWICE,
    "max_tokens: OutputLimit": _TWICE,
    "max_tokens: _Where": _TWICE,
    "top_logprobs: AsCount": _TWICE,
    "top_logprobs: LeaveOut": _TWICE,
    "top_p: Omit": _TWICE,
    "messages: cache_control": _TWICE,
    "messages: empty_calls": _TWICE,
    "messages: nulls": _TWICE,
    "messages: reasoning_known": _TWICE,
    "n: AtMost": _SHAPED,
    "tool_choice: ToolChoice": _SHAPED,
    "tools: ToolsIfOffered": _SHAPED,
    "response_format: ResponseFormat": _SHAPED,
    "reasoning_effort: Effort": _EASY,
    "service_tier: Words": _EASY,
    "verbosity: Words": _EASY,
    "parallel_tool_calls: OneCall": _EASY,
    "logprobs: AsFlag": _EASY,
    "logprobs: WantShape": _EASY,
    "shape: TwoPhase": _EASY,
    "shape: EmulateSchema": _EASY,
    "shape: EmulateTools": _EASY,
    "shape: FanOut": _EASY,
    "shape: RetellCalls": _EASY,
    "messages: developer_to_system": _EASY,
    "messages: functions": _EASY,
    "messages: parts": _EASY,
    "messages: prefix_names": _EASY,
    "reasoning_format: _Where": _OWN,
    "structured_outputs: _Where": _OWN,
    "chat_template: _Where": _OWN,
    "chat_template_kwargs: _Where": _OWN,
    "grammar: _Where": _OWN,
    "regex: _Where": _OWN,
    "shape: FakeStream": _OWN,
    "top_logprobs: _Where": "for alternatives without log probabilities, which OpenAI refuses",
    "messages: non_assistant_needs_content": "for content that is null, which OpenAI refuses",
    "shape: AfterRefusal": "waits for a refusal that no simulator gives",
    "shape: FetchImages": "would fetch from a public address",
    "shape: PromptAsChat": "for text completions",
    "tools: CleanTools": "the first of OpenAI's models has no tools in chats",
    "quirk": "has tests of its own, of requests to llama.cpp",
}
"""Patches whose absence no request here shows, each with the reason; the same holds of no other."""


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_every_patch_is_missed_by_a_request() -> None:
    survivors: dict[str, list[str]] = defaultdict(list)
    async with rehearsal(MODELS) as rehearsed:
        for model in MODELS:
            for mutation in mutations(rehearsed.backend(model).adapter):
                if not await is_missed(rehearsed, model, mutation):
                    survivors[mutation.name].append(model)
    assert {name: models for name, models in survivors.items() if name not in _SURVIVORS} == {}
    assert _SURVIVORS.keys() - survivors.keys() == set(), "these are missed by now"


async def is_missed(rehearsed: Rehearsal, model: str, mutation: Mutation) -> bool:
    """Whether some request fails without the patch; those that are about its parameter are tried first."""
    backend = rehearsed.backend(model)
    whole = backend.adapter
    backend.adapter = mutation.apply(whole)
    try:
        for use in sorted((*USES, *RARE, *MESSAGES), key=lambda use: mutation.about not in (use.head, *use.members)):
            if await _fails(rehearsed, model, use):
                return True
    finally:
        backend.adapter = whole
    return False


async def _fails(rehearsed: Rehearsal, model: str, use: Use) -> bool:
    for stream in (False, True):
        answer, seen = await ask(rehearsed, model, use, stream)
        try:
            (judge_messages if use in MESSAGES else judge)(rehearsed, model, use, answer, seen)
        except Exception:  # noqa: BLE001  whatever goes wrong without the patch shows that it is needed
            return True
    return False
