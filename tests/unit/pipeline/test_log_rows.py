"""The row of a call that its only attempt has answered is the same, made the short way or the long one."""

from __future__ import annotations

import msgspec
import pytest

from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Operation, Usage
from gateway.catalog import Model
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.holds import CountingLedger, Hold
from gateway.pipeline.log_row import answered_row, row_of
from gateway.telemetry.metrics import Answered
from tests.fakes.relayed import Captured

USAGES = [Usage(7, 5), Usage(70, 50, 64, 32, estimated=True)]


@pytest.mark.parametrize("waited", [0.0, 0.25])
@pytest.mark.parametrize("cost", [None, 0, 1234])
@pytest.mark.parametrize("usage", USAGES)
def test_both_ways_make_one_row(usage: Usage, cost: int | None, waited: float) -> None:
    target = Target("groq/llama", "groq", "llama", load_spec("groq"))
    hold = Hold(CountingLedger(), target, usage=usage, cost_nusd=cost)
    # Times are in binary fractions, so that sums of them are exact.
    attempt = Attempt(target, hold, 10.5, 12.25, 11.75, status=200)
    call = Call(Captured(), Operation.CHAT, 10.0, 1e9, "req_1", model=Model("chat", (target,)), stream=True)
    call.attempts, call.waited_seconds, call.ended, call.status = [attempt], waited, 13.0, 200
    figures: list[Answered] = []

    row = answered_row(call, attempt, usage, figures)

    expected = row_of(call)
    assert msgspec.structs.replace(row, attempts=[*row.attempts]) == expected
    assert (row.total_ms, row.overhead_ms, row.ttft_ms) == (3000, 1250 - waited * 1000, 1750)
    counts = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert figures == [(3.0, 1.25 - waited, 1.75, 1.25, *counts, cost or 0)]
