"""Text completions at targets that have chats alone: the prompt becomes what a user says, the reply the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.endpoint_patches import OF_COMPLETIONS_ALONE
from adapters.patches import unsupported
from adapters.shapes.base import Answer, Caller, Continue, Outcome
from adapters.shapes.bodies import changed, is_used, value_of, without
from adapters.spec import ProviderSpec
from adapters.types import Action, Body, Operation

_CHAT_ID: Final = "chatcmpl-"
_TEXT_ID: Final = "cmpl-"
_NO_CHOICE: Final = {"text": "", "index": 0, "logprobs": None, "finish_reason": None}


def chat_stands_in(spec: ProviderSpec) -> bool:
    """Whether there are chats, but no text completions."""
    text, chat = (spec.endpoints.get(operation) for operation in (Operation.COMPLETIONS, Operation.CHAT))
    return not (text is not None and text.available) and chat is not None and chat.available


@dataclass(frozen=True, slots=True)
class PromptAsChat:
    """Sends a chat in place of a text completion. A chat answers where a completion goes on, hence it is lossy.

    What a chat cannot give (``echo``, ``suffix``, ``best_of``, ``logprobs`` of that shape, tokens as prompt, several
    prompts) is refused; all but the prompt is left out where the client would rather have that.
    """

    provider: str

    param: ClassVar[str] = "prompt"
    action: ClassVar[Action] = Action.EMULATED
    lossy: ClassVar[bool] = True
    triggers: ClassVar[frozenset[str]] = frozenset(("prompt",))

    def applies(self, draft: Draft) -> bool:
        if draft.operation is not Operation.COMPLETIONS:
            return False
        if draft.unsupported is Unsupported.REJECT:
            reason = "It has chat completions alone; they could stand in, which the request asks not to do."
            raise unsupported("prompt", self.provider, reason)
        if _text(draft.body) is None:
            reason = "It has chat completions alone, so a request has one prompt, as a text."
            raise unsupported("prompt", self.provider, reason)
        for name in sorted(OF_COMPLETIONS_ALONE & draft.body.keys()):
            if not is_used(draft.body, name):
                continue
            if draft.unsupported is not Unsupported.DROP:
                raise unsupported(name, self.provider, "It has chat completions alone.")
            draft.adjusted(name, Action.DROPPED)
        return True

    def first(self, body: Body) -> Body:
        messages = [{"role": "user", "content": _text(body)}]
        return changed(without(body, "prompt", *OF_COMPLETIONS_ALONE), messages=messages)

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        return Continue(self.first(body))


def _text(body: Body) -> str | None:
    """The one prompt; None for several, and for one in tokens."""
    prompt = value_of(body, "prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    return prompt if isinstance(prompt, str) else None


def text_completion(answer: Answer) -> Answer:
    """A whole chat answer as that of a text completion."""
    return _told(answer, [_choice(choice, choice.get("message")) for choice in answer["choices"]])


def text_chunk(payload: bytes) -> bytes | None:
    """A chunk of a chat's stream as that of a text completion; None where it says nothing to such a client."""
    chunk = msgspec.json.decode(payload)
    choices = [_choice(choice, choice.get("delta")) for choice in chunk.get("choices") or ()]
    says = [choice for choice in choices if choice["text"] or choice["finish_reason"] is not None]
    if not says and not chunk.get("usage"):
        return None
    return msgspec.json.encode(_told(chunk, says))


def _told(answer: Answer, choices: list[dict[str, Any]]) -> Answer:
    told = {**answer, "object": "text_completion", "choices": choices}
    found = str(answer.get("id") or "")
    if found.startswith(_CHAT_ID):
        told["id"] = _TEXT_ID + found.removeprefix(_CHAT_ID)
    return told


def _choice(choice: dict[str, Any], said: Any) -> dict[str, Any]:
    text = said.get("content") if isinstance(said, dict) else None
    found = {name: choice.get(name) for name in ("index", "finish_reason")}
    return {**_NO_CHOICE, "text": text if isinstance(text, str) else "", **found}
