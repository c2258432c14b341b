"""What a target's answers need so that they read like OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.answers import Answer
from adapters.draft import AnswerNeeds
from adapters.embeddings import inputs_of, mend_list
from adapters.plain_answer import plain_usage
from adapters.repair.rules import Rules
from adapters.repair.stream import StreamRepair
from adapters.repair.whole import is_plain, mend
from adapters.spec import ProviderSpec
from adapters.types import Operation, Usage

_NO_REQUEST: Final[Mapping[str, msgspec.Raw]] = {}


class Repair:
    """Compiled once from a target's facts. *request* is always what was asked in OpenAI's words."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def plain(self, body: bytes, operation: Operation) -> Usage | None:
        """What *body* says was used, if it reads like OpenAI's already, as nearly all answers do; else None."""
        rules = self._rules
        if rules.opened:
            return None
        for marker in rules.markers:
            if body.find(marker) >= 0:
                return None
        return plain_usage(body, operation)

    def whole(
        self,
        body: bytes,
        answer: Answer,
        operation: Operation,
        needs: AnswerNeeds | None,
        request: Mapping[str, msgspec.Raw] = _NO_REQUEST,
    ) -> bytes:
        """*body*, of which *answer* are the parts, as OpenAI would have said it.

        Raises `AnswerFailedError` for an answer that says it failed, and `UnreadableError` for what is no answer.
        """
        if operation is Operation.EMBEDDINGS:
            told = answer.object, answer.model, answer.data, answer.usage
            return mend_list(body, *told, self._rules.model, inputs_of(request))
        if needs is None and not self._rules.opened and is_plain(answer, operation):
            for marker in self._rules.markers:
                if body.find(marker) >= 0:
                    break
            else:
                return body
        return mend(self._rules, body, operation, needs, request)

    def stream(
        self,
        operation: Operation,
        needs: AnswerNeeds | None,
        request: Mapping[str, msgspec.Raw] = _NO_REQUEST,
    ) -> StreamRepair:
        """The state machine for one stream."""
        return StreamRepair(self._rules, operation, needs, request)


def compile_repair(spec: ProviderSpec, model: str = "") -> Repair:
    """The repair of a target with these facts; *model* is the provider's name of its model."""
    return Repair(Rules(spec, model))
