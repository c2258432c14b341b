"""Several choices from a target that gives one: as many requests as choices, their answers put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from adapters.draft import Draft
from adapters.shapes.base import Answer, Caller, Outcome, Shape, Split
from adapters.shapes.bodies import changed, value_of, without
from adapters.shapes.usage import sum_of_choices
from adapters.types import Action, Body, Operation

_LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class FanOut:
    """``n`` above *most*, and any ``n`` above 1 where another shape is at work: shapes give one choice each."""

    most: int
    others: tuple[Shape, ...] = ()

    param: ClassVar[str] = "n"
    action: ClassVar[Action] = Action.SPLIT
    lossy: ClassVar[bool] = False
    triggers: ClassVar[frozenset[str]] = frozenset(("n",))

    def applies(self, draft: Draft) -> bool:
        if draft.operation is Operation.EMBEDDINGS:
            return False
        n = _choices(draft.body)
        return n > self.most or (n > 1 and any(_applies(shape, draft) for shape in self.others))

    def first(self, body: Body) -> Body:
        return without(body, "n")

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        child, seed = without(body, "n"), value_of(body, "seed")
        if not isinstance(seed, int):
            return Split((child,) * _choices(body))
        # One seed for all would give the same choice each time.
        return Split(tuple(changed(child, seed=_seed(seed + number)) for number in range(_choices(body))))


def _applies(shape: Shape, draft: Draft) -> bool:
    return not shape.triggers.isdisjoint(draft.body) and shape.applies(draft)


def _choices(body: Body) -> int:
    n = value_of(body, "n")
    return n if isinstance(n, int) else 1


def _seed(value: int) -> int:
    return value if value <= _LARGEST_SEED else value - _LARGEST_SEED


def choice_index(index: int, number: int, of: int) -> int:
    """Where the choice *index* of answer *number* stands in the whole: those to one prompt stand together."""
    return index * of + number


def merged(answers: Sequence[Answer]) -> Answer:
    """One answer that holds the choices of all."""
    choices = [
        {**choice, "index": choice_index(choice.get("index") or 0, number, len(answers))}
        for number, answer in enumerate(answers)
        for choice in answer["choices"]
    ]
    whole = {**answers[0], "choices": sorted(choices, key=lambda choice: int(choice["index"]))}
    usage = sum_of_choices(answer.get("usage") for answer in answers)
    if usage is not None:
        whole["usage"] = usage
    return whole
