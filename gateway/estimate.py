"""What a request may come to at one target: tokens, cost, and whether it fits the context window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import msgspec

from adapters.adapter import Prepared
from adapters.context import shortfall
from adapters.pricing import cost_nusd, expected_usage
from adapters.target import Target
from adapters.types import Action, Operation, Usage
from gateway.pipeline.call import Call


class Fit(StrEnum):
    """Whether a request fits the context window."""

    FITS = "fits"
    DOUBTFUL = "doubtful"  # by an estimate it does not
    TOO_LONG = "too_long"  # by any tokenizer
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the request may come to at one target."""

    usage: Usage
    cost_nusd: int | None
    """None where the price is unknown."""
    fit: Fit
    counted: bool = False
    """Whether the prompt's tokens were counted by the model's own tokenizer."""


Count: TypeAlias = Callable[[Target, Operation, bytes], "int | None"]
"""Tokens of the prompt in the body of a request, by the target's own tokenizer; None where that is not at hand."""


def estimate(target: Target, call: Call, prepared: Prepared, count: Count | None) -> Estimate:
    """What *call* may come to at *target*, which would be sent what is *prepared*; counted where that is at hand."""
    split = any(change.param == "n" and change.action is Action.SPLIT for change in prepared.adjustments)
    requests = call.choices if split else 1
    usage = expected_usage(
        call.prompt_bytes(),
        asked=call.output_limit,
        most=target.max_output_tokens,
        choices=call.choices if call.operation is not Operation.EMBEDDINGS else 0,
        prompts=requests,
    )
    counted = None
    if count is not None:
        # Where a shape decides what is sent, the request as it came is the best there is to count.
        counted = count(target, call.operation, prepared.body or msgspec.json.encode(call.body))
    if counted is not None:
        usage = Usage(counted * requests, usage.completion_tokens, estimated=True)
    once = Usage(usage.prompt_tokens // requests, usage.completion_tokens // requests, estimated=True)
    fit = _fit(target, call) if counted is None else _fit_counted(target, call, counted)
    return Estimate(usage, cost_nusd(target.price, *[once] * requests), fit, counted is not None)


def _fit(target: Target, call: Call) -> Fit:
    if target.context_window is None:
        return Fit.UNKNOWN
    if shortfall(target, call.body, call.operation) is not None:
        return Fit.TOO_LONG
    once = expected_usage(call.prompt_bytes(), asked=call.output_limit, most=None, choices=1)
    answer = once.completion_tokens if call.output_limit is not None else 0
    return Fit.FITS if once.prompt_tokens + answer <= target.context_window else Fit.DOUBTFUL


def _fit_counted(target: Target, call: Call, prompt: int) -> Fit:
    """As `_fit`, of a prompt whose tokens are known. An answer that gets less room than it may have is doubtful."""
    if target.context_window is None:
        return Fit.UNKNOWN
    least = prompt + (call.operation is not Operation.EMBEDDINGS)
    if least > target.context_window:
        return Fit.TOO_LONG
    return Fit.FITS if prompt + (call.output_limit or 0) <= target.context_window else Fit.DOUBTFUL
