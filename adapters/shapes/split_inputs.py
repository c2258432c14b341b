"""More inputs than a target embeds at once: as many requests as that takes, their vectors in one list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec

from adapters.draft import Draft
from adapters.embeddings import inputs_of
from adapters.shapes.base import Answer, Caller
from adapters.shapes.bodies import changed
from adapters.shapes.usage import sum_of_calls
from adapters.types import Action, Body, Operation

_decode = msgspec.json.Decoder(list[msgspec.Raw]).decode
INPUT: Final = "input"


@dataclass(frozen=True, slots=True)
class SplitInputs:
    """Lists of more than *most* inputs, one request after another: a target that takes few at once is a small one."""

    most: int

    param: ClassVar[str] = INPUT
    action: ClassVar[Action] = Action.SPLIT
    lossy: ClassVar[bool] = False
    triggers: ClassVar[frozenset[str]] = frozenset((INPUT,))

    def applies(self, draft: Draft) -> bool:
        return draft.operation is Operation.EMBEDDINGS and (inputs_of(draft.body) or 0) > self.most

    def first(self, body: Body) -> Body:
        return self._parts(body)[0]

    async def answer(self, body: Body, caller: Caller) -> Answer:
        whole: Answer = {}
        for part in self._parts(body):
            answer = await caller.whole(part)
            data = [*whole.get("data", ()), *answer["data"]]
            usage = sum_of_calls(whole.get("usage"), answer.get("usage"))
            whole = {**answer, "data": data, "usage": usage}
        return {**whole, "data": [{**vector, "index": place} for place, vector in enumerate(whole["data"])]}

    def _parts(self, body: Body) -> list[Body]:
        inputs = _decode(body[INPUT])
        return [changed(body, input=inputs[at : at + self.most]) for at in range(0, len(inputs), self.most)]
