"""The choices of one answer: each piece is put in order in view of what was heard of its choice before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from adapters.draft import AnswerNeeds
from adapters.repair.asked import begins_a_name, may_think, offered_name, tools_in_text
from adapters.repair.choice import ChoiceRepair
from adapters.repair.chunk import ChunkChoice, object_of, value_of
from adapters.repair.ends import end_choice, reason_of
from adapters.repair.message import mend_delta
from adapters.repair.rules import Rules


class Choices:
    """What has been heard of each choice of an answer, and what the request says that matters for all of them.

    It knows nothing of events, nor of what else they hold: pieces of choices come in, and pieces go out.
    """

    def __init__(
        self,
        rules: Rules,
        needs: AnswerNeeds,
        request: Mapping[str, msgspec.Raw],
        make_id: Callable[[int, int], str],
        *,
        chat: bool,
    ) -> None:
        """*make_id* gives the id of a call by the index of its choice, and by its own."""
        self.by_index: dict[int, ChoiceRepair] = {}
        self._rules, self._needs, self._request, self._make_id = rules, needs, request, make_id
        self._chat = chat
        self._new_style = "tools" in request
        self._opened = rules.opened and may_think(request, rules.off)
        self._is_cut = partial(begins_a_name, request) if self._new_style else None
        self._tidy = partial(offered_name, request) if self._new_style else None
        self._tools = tools_in_text(request) if rules.calls_in_content else frozenset()

    def take(self, chunk: ChunkChoice) -> list[ChunkChoice]:
        """What goes out for *chunk*. Raises `AnswerFailedError` where its finish reason tells of a failure."""
        choice = self.by_index.get(chunk.index)
        if choice is None:
            choice = self.by_index[chunk.index] = ChoiceRepair(
                self._rules,
                self._needs,
                self._tools,
                partial(self._make_id, chunk.index),
                chat=self._chat,
                opened=self._opened,
                is_cut=self._is_cut,
                tidy=self._tidy,
            )
        if choice.cut:
            return []
        reason, first = reason_of(chunk, self._rules.finish), not choice.started
        if self._chat:
            mend_delta(chunk, choice, self._rules, self._needs, new_style=self._new_style, last=reason is not None)
        else:
            choice.started = True
            if not isinstance(value_of(chunk.choice.get("text")), str):
                chunk.put("text", _text_of_chat(chunk))
        says = chunk.says_something()
        out: list[ChunkChoice] = []
        if choice.pending:
            if not says:
                return out  # the end was heard before
            (before,), choice.pending = choice.pending, []  # what looked like the end was none
            before.put_reason(None)
            out = choice.text(before, last=False)
            if choice.cut:
                return out
        if choice.reason is not None:
            if not says:
                return out
            reason = None
        chunk.put_reason(reason)
        if "finish_reason" not in chunk.choice:
            chunk.put_choice("finish_reason", None)
        if reason is None:
            return out + choice.text(chunk, last=False)
        if says or first:
            choice.pending = [chunk]
            return out
        return out + end_choice(chunk, choice, reason, self._request)

    def end_pending(self, still_talking: Sequence[ChunkChoice] = ()) -> list[ChunkChoice]:
        """What ends the choices that seemed to end before, all but those of which more has come now."""
        out: list[ChunkChoice] = []
        for index, choice in self.by_index.items():
            if choice.pending and index not in [chunk.index for chunk in still_talking]:
                (chunk,), choice.pending = choice.pending, []
                reason = value_of(chunk.choice.get("finish_reason"))
                out += end_choice(chunk, choice, reason, self._request)
        return out

    def end_all(self, like: ChunkChoice, reason: str) -> list[ChunkChoice]:
        """What ends the choices that have no end yet, with *reason*; their pieces are *like* another one."""
        out: list[ChunkChoice] = []
        for index, choice in self.by_index.items():
            if choice.reason is None:
                out += end_choice(like.like(index), choice, reason, self._request)
        return out

    def release(self, like: ChunkChoice) -> list[ChunkChoice]:
        """The text that is held of choices without an end; their pieces are *like* another one."""
        out: list[ChunkChoice] = []
        for index, choice in self.by_index.items():
            if choice.reason is None:
                out += choice.release(like.like(index))
        return out


def _text_of_chat(chunk: ChunkChoice) -> str:
    """What a chat's message or delta says, in a choice that should be a text."""
    said = object_of(chunk.choice.pop("message", None)) or object_of(chunk.choice.pop("delta", None))
    text = value_of(said.get("content"))
    return text if isinstance(text, str) else ""
