"""The text of one choice of a stream: tags, calls written as text and stops, found in whatever pieces it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from adapters.draft import AnswerNeeds
from adapters.plain_answer import TAG_OR_CALL
from adapters.repair import logprobs
from adapters.repair.arguments import written_calls
from adapters.repair.calls import CallTracker
from adapters.repair.chunk import ChunkChoice, value_of
from adapters.repair.finish import STOP
from adapters.repair.rules import Rules
from adapters.repair.stops import StopWatch
from adapters.repair.thinking import Opening, ThinkSplitter
from adapters.stream_pattern import CONTENT, TEXT, Slot

_MOST_WRITTEN: Final = 131_072


class ChoiceRepair:
    """What has been heard of one choice, and what of it is held until more is known."""

    __slots__ = (
        "_chat", "_held", "_stops", "_think", "_tools", "_written", "calls", "cut", "function_call", "old_style",
        "pending", "reason", "started",
    )  # fmt: skip

    def __init__(
        self,
        rules: Rules,
        needs: AnswerNeeds,
        tools: frozenset[str],
        make_id: Callable[[int], str],
        *,
        chat: bool,
        opened: bool,
        is_cut: Callable[[str], bool] | None = None,
        tidy: Callable[[str], str] | None = None,
    ) -> None:
        """*tools* are the names a call written as text may have; none where such calls are not looked for. *opened*:
        the text begins within a tag. *is_cut* and *tidy* are for the `CallTracker`."""
        self.started = False
        self.reason: str | None = None
        """Why it ended, once that was passed on."""
        self.cut = False
        """It ended at a stop that we found, and nothing of it may follow."""
        self.pending: list[ChunkChoice] = []
        """A piece with text and a finish reason, which is the end only if no more comes (BerriAI/litellm#2195)."""
        self.calls = CallTracker(make_id, only_first=needs.one_call, is_cut=is_cut, tidy=tidy)
        self.function_call: str | None = None
        """The arguments so far of a call in the old style."""
        self.old_style = False
        """Its calls come in the old style, and are passed on in the new one."""
        self._chat = chat
        self._think = ThinkSplitter(rules.tags, opened=opened) if chat and rules.tags else None
        self._stops = StopWatch(needs.stops) if needs.stops else None
        self._tools = tools if chat else frozenset()
        self._held: list[ChunkChoice] = []
        self._written = ""

    @property
    def idle(self) -> bool:
        """Whether plain text may pass without a look."""
        watched = self._think is not None or self._stops is not None or bool(self._tools) or bool(self.pending)
        return self.started and not watched

    def begins_plainly(self, content: bytes) -> bool:
        """Whether its text begins with *content*, JSON, and not with a tag: then there is no tag to look for."""
        if self._think is None or not self._think.untouched or content[:2] in TAG_OR_CALL:
            return False
        self._think = None
        return True

    def slot(self) -> Slot | None:
        """Where a text goes that comes now; None where it has to be held, or looked at with what came before."""
        if self._think is not None:
            flows = self._think.flows
            return Slot(("content",), "reasoning_content", self._think.passes) if flows else None
        if self._tools:
            return None
        name = "content" if self._chat else "text"
        if self._stops is not None:
            return Slot((name,), name, self._stops.passes) if self._stops.flows else None
        return CONTENT if self._chat else TEXT

    def text(self, chunk: ChunkChoice, *, last: bool) -> list[ChunkChoice]:
        """What may go out now that *chunk* came. With *last* it is all there is, and ends with *chunk* itself."""
        if self._think is not None and (last or chunk.text):
            return self._past_tags(self._think, chunk, last)
        if self._think is not None and self._held and chunk.says_something():
            # Nothing can overtake the text: a tag that is still open when something else comes is none.
            self._think, held, self._held = None, self._held, []
            return self._past_written([*held, chunk], last)
        return self._past_written([chunk], last)

    def release(self, like: ChunkChoice) -> list[ChunkChoice]:
        """What is held when a stream breaks off."""
        waiting, self.pending = self.pending, []
        out: list[ChunkChoice] = []
        for chunk in waiting:
            chunk.put_reason(None)
            out += self.text(chunk, last=False)
        out += self.text(like.like(), last=True)
        return [chunk for chunk in out if chunk.says_something()]

    def _past_tags(self, think: ThinkSplitter, chunk: ChunkChoice, last: bool) -> list[ChunkChoice]:
        reasoning, answer = think.feed(chunk.text)
        if think.state is Opening.UNDECIDED and not last:
            self._held.append(chunk)
            return []
        held, self._held = self._held, []
        if think.state is not Opening.THINKING:
            self._think = None
            return self._past_written([*held, chunk], last)
        if last:
            rest = think.end()
            reasoning, answer = reasoning + rest[0], answer + rest[1]
        if last or think.over:
            self._think = None
        first = _without_text(held)
        chunk.put_text(answer)
        if reasoning and answer:
            before = chunk.like(reasoning_content=reasoning)
            if "role" in chunk.delta:
                before.put("role", chunk.take("role"))
            first.append(before)
        elif reasoning:
            chunk.put("reasoning_content", reasoning)
        return first + self._past_written([chunk], last)

    def _past_written(self, chunks: list[ChunkChoice], last: bool) -> list[ChunkChoice]:
        """Hold a text that may be a call, to its end."""
        if not self._tools:
            return [out for one in chunks for out in self._past_stops(one, last and one is chunks[-1])]
        if len(self.calls):
            self._tools = frozenset()  # it can make calls properly
        self._held += chunks
        self._written += "".join(chunk.text for chunk in chunks)
        begun = self._written.lstrip()[:1]
        if self._tools and not last and (not begun or (begun in "{[" and len(self._written) < _MOST_WRITTEN)):
            silent = [chunk for chunk in chunks if not chunk.text]
            self._held = [chunk for chunk in self._held if chunk.text]
            return silent
        held, self._held = self._held, []
        calls = written_calls(self._written, self._tools) if last and begun in ("{", "[") else None
        self._written, self._tools = "", frozenset()
        if calls is not None:
            chunk = chunks[-1]
            chunk.put_text("")
            chunk.put("tool_calls", self.calls.feed(calls))
            return [*_without_text(held[:-1]), chunk]
        return [out for one in held for out in self._past_stops(one, last and one is held[-1])]

    def _past_stops(self, chunk: ChunkChoice, last: bool) -> list[ChunkChoice]:
        stops = self._stops
        if stops is None:
            return [chunk] if last or not chunk.changed or _worth_sending(chunk) else []
        if stops.hit:
            return []
        text = chunk.text
        found = value_of(chunk.choice.get("logprobs"))
        if isinstance(found, dict):
            stops.note(logprobs.entries(found) if chunk.chat else logprobs.rows(found))
        said = stops.feed(text) if text else ""
        if last and not stops.hit:
            said += stops.end()
        if said != text:
            chunk.put_text(said)
        self._put_logprobs(chunk, found if isinstance(found, dict) else {}, stops.said())
        if stops.hit:
            self.cut, self.reason, self.pending = True, STOP, []
            chunk.put_reason(STOP)
            return [chunk]
        return [chunk] if last or not chunk.changed or _worth_sending(chunk) else []

    @staticmethod
    def _put_logprobs(chunk: ChunkChoice, found: dict[str, Any], said: list[dict[str, Any]]) -> None:
        """The log probabilities of the text that goes out, which may have come with an earlier piece."""
        if found or said:
            made = {"refusal": None, **found, "content": said} if chunk.chat else {**found, **logprobs.columns(said)}
            if made != found:
                chunk.put_choice("logprobs", made)


def _without_text(held: list[ChunkChoice]) -> list[ChunkChoice]:
    """What is left to say of pieces whose text has become something else."""
    for chunk in held:
        chunk.put_text("")
    return [chunk for chunk in held if _worth_sending(chunk)]


def _worth_sending(chunk: ChunkChoice) -> bool:
    """Whether a piece that was changed still says anything."""
    return chunk.says_something() or "role" in chunk.delta or chunk.choice.get("finish_reason") is not None
