"""A forced tool call that did not come: asked for once more, in a way that leaves the model no other answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adapters.draft import Draft, Unsupported
from adapters.errors import TOOL_CALL_MISSING, ProviderError
from adapters.shapes.base import Caller, Outcome, Shape
from adapters.shapes.bodies import is_used
from adapters.shapes.tool_request import least_called_first, read_tool_request
from adapters.shapes.usage import sum_of_calls
from adapters.types import Action, Body, Usage


class CallMissing:
    """Rescues answers without the call that the provider was told to have made."""

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        if failure.code != TOOL_CALL_MISSING or draft.unsupported is Unsupported.REJECT:
            return None
        if any(is_used(draft.body, name) for name in ("logprobs", "top_logprobs")):
            return None  # the tokens would not be those of the answer
        return _Bound(failure.used) if read_tool_request(draft.body) is not None else None

    def worked(self) -> None:
        """Nothing to remember: the next answer may well have its call."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """The call as JSON of a schema, as `EmulateForcedTool` asks for it in the end."""

    used: Usage | None
    """What the answer without the call has cost."""

    param: ClassVar[str] = "tool_choice"
    action: ClassVar[Action] = Action.EMULATED
    lossy: ClassVar[bool] = True
    triggers: ClassVar[frozenset[str]] = frozenset(("tool_choice",))

    def applies(self, draft: Draft) -> bool:
        return True

    def first(self, body: Body) -> Body:
        request = read_tool_request(body)
        assert request is not None
        return request.asked(body)

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        body = least_called_first(body)
        request = read_tool_request(body)
        assert request is not None
        bound = await request.answer(request.asked(body), caller)
        usage = sum_of_calls(_told(self.used), bound.get("usage"))
        return bound if usage is None else {**bound, "usage": usage}


def _told(used: Usage | None) -> dict[str, int] | None:
    if used is None:
        return None
    prompt, answer = used.prompt_tokens, used.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
