"""Lets an answer go wrong, in the way a fault says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from adapters.simulator.faults import Fault, FaultKind
from adapters.simulator.refusal import Refusals, RefusedError
from adapters.simulator.wire import Answer, Break, Step
from adapters.types import FailureKind

_IN_STREAM: Final = (FaultKind.STREAM_ERROR, FaultKind.CUT, FaultKind.HANG, FaultKind.MALFORMED)


def refuse_by(fault: Fault, refusals: Refusals, exhausted: Mapping[str, str]) -> None:
    """Raise the `RefusedError` of a fault that is one; *exhausted* are the headers of a spent limit."""
    match fault.kind:
        case FaultKind.STATUS:
            message = "The server had an error while processing your request."
            raise RefusedError(message, int(fault.number), "server_error")
        case FaultKind.CASE:
            case = refusals.case(fault.value)
            extra = {"failed_generation": json.dumps({"name": "simulated", "arguments": {}})}
            salvaged = case is not None and case.patch is not None
            otherwise = RefusedError(f"simulated: {fault.value}", extra=extra if salvaged else {})
            raise refusals.by_case(case, otherwise)
        case FaultKind.RATE_LIMIT:
            headers = {**exhausted, "retry-after": f"{fault.number:g}"}
            message = f"Rate limit reached. Please try again in {fault.number:g}s."
            limited = RefusedError(message, 429, "rate_limit_error", "rate_limit_exceeded", headers=headers)
            raise refusals.by_case(refusals.case("rate_limit") or refusals.of_kind(FailureKind.RATE_LIMITED), limited)
        case FaultKind.OVERLOAD:
            headers = {"retry-after": f"{fault.number:g}"}
            overloaded = RefusedError("Service overloaded.", 503, "server_error", headers=headers)
            raise refusals.by_case(refusals.case("overloaded") or refusals.of_kind(FailureKind.OVERLOADED), overloaded)
        case _:
            return


def trouble_whole(fault: Fault, answer: Answer, body: bytes) -> Answer:
    """A whole answer that goes wrong: cut short, never sent, or not what its length or type says."""
    half = len(body) // 2
    match fault.kind:
        case FaultKind.CUT | FaultKind.STREAM_ERROR:
            return replace(answer, steps=iter((body[:half], Break.CUT)))
        case FaultKind.HANG if not fault.number:
            return replace(answer, delay=math.inf)
        case FaultKind.HANG:
            return replace(answer, steps=iter((body[:half], Break.HANG)))
        case FaultKind.MALFORMED:
            return replace(answer, steps=iter((body[:half],)), length=half)
        case _:
            return answer


def trouble_stream(fault: Fault, steps: Iterator[Step], error_event: bytes) -> Iterator[Step]:
    """A stream that goes wrong after as many events as the fault says."""
    if fault.kind not in _IN_STREAM:
        yield from steps
        return
    left = fault.number if fault.kind is not FaultKind.MALFORMED else 1
    for step in steps:
        if not isinstance(step, bytes) or not step.startswith(b"data:"):
            yield step
        elif left > 0:
            left -= 1
            yield step
        elif fault.kind is FaultKind.MALFORMED:
            yield step[: len(step) // 2] + b"\n\n"
            yield from steps
            return
        else:
            yield error_event if fault.kind is FaultKind.STREAM_ERROR else _BREAKS[fault.kind]
            return


_BREAKS: Final = {FaultKind.CUT: Break.CUT, FaultKind.HANG: Break.HANG}
