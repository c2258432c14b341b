"""Reasoning that a model writes into its text between tags, parted from the answer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

# A model that begins with more white space than this is not about to open a tag.
_MOST_BLANKS: Final = 256
# JSON's own: a text that passes unread is told by its first byte from one that may open a tag behind blanks.
_BLANKS: Final = " \t\r\n"


class Opening(StrEnum):
    """What the beginning of a text turned out to be."""

    UNDECIDED = "undecided"
    PLAIN = "plain"
    THINKING = "thinking"


class ThinkSplitter:
    """Parts a text that opens with a tag, in whatever pieces it comes.

    A tag counts at the very start only: further on it may be what the answer is about. Where it is never closed, all
    that follows is reasoning; nothing is lost but the tags and the blanks around them.
    """

    def __init__(self, tags: Mapping[str, str], *, opened: bool = False) -> None:
        """*tags* maps what opens reasoning to what closes it; *opened*: the prompt has opened the first of them."""
        self._tags = tags
        self._opened = opened
        self._closing = ""
        self._held = ""
        self._inside = False
        self._blank = True
        """Nothing but blanks so far since the last tag."""
        self.state = Opening.UNDECIDED
        self.over = False
        """The answer has begun: what follows needs no more looking at."""

    def feed(self, text: str) -> tuple[str, str]:
        """Reasoning and answer in the next piece. While the opening is undecided, the piece is held and both are empty;
        once it is `PLAIN`, whoever feeds has the held text back by `release`."""
        self._held += text
        if self.state is Opening.UNDECIDED:
            self._judge()
        return self._part() if self.state is Opening.THINKING else ("", "")

    @property
    def untouched(self) -> bool:
        """Whether nothing has come yet, and the prompt has left it open what will."""
        return self.state is Opening.UNDECIDED and not self._held and not self._opened

    @property
    def flows(self) -> bool:
        """Whether all text that comes is reasoning, as far as it `passes`."""
        return self._inside and not self._blank and not self._held

    def passes(self, text: str) -> bool:
        """Whether *text* is reasoning as it stands, while all `flows`: it holds nothing of what may end it."""
        return self._closing[0] not in text and text[-1:] != "\n"

    def release(self) -> str:
        """What is still held, which turned out to be none of a tag."""
        held, self._held = self._held, ""
        return held

    def end(self) -> tuple[str, str]:
        """The rest, after the last piece."""
        if self.state is not Opening.THINKING:
            return "", self.release()
        rest = self.release()
        if self._blank:
            rest = rest.lstrip()
        return (rest, "") if self._inside else ("", rest)

    def _judge(self) -> None:
        begun = self._held.lstrip(_BLANKS)
        if self._opened and begun and not any(tag.startswith(begun) or begun.startswith(tag) for tag in self._tags):
            self._enter(next(iter(self._tags.values())), begun, inside=True)
            return
        for opening, closing in self._tags.items():
            if begun.startswith(opening):
                self._enter(closing, begun[len(opening) :], inside=True)
                return
            if begun.startswith(closing):
                # The reasoning came in a field of its own, and only its last tag got into the text.
                self._enter(closing, begun[len(closing) :], inside=False)
                return
        if begun:
            if not any(tag.startswith(begun) for pair in self._tags.items() for tag in pair):
                self.state = Opening.PLAIN
        elif len(self._held) > _MOST_BLANKS:
            self.state = Opening.PLAIN

    def _enter(self, closing: str, rest: str, *, inside: bool) -> None:
        self.state, self._closing, self._inside, self._held = Opening.THINKING, closing, inside, rest

    def _part(self) -> tuple[str, str]:
        reasoning = ""
        if self._inside:
            self._drop_blanks()
            before, tag, after = self._held.partition(self._closing)
            if not tag:
                kept = overlap(self._held, self._closing)
                # The line ends before the tag go with it, and nobody knows yet whether these are.
                cut = len(self._held[: len(self._held) - kept].rstrip("\n"))
                reasoning, self._held = self._held[:cut], self._held[cut:]
                return reasoning, ""
            reasoning, self._held, self._inside, self._blank = before.rstrip("\n"), after, False, True
        self._drop_blanks()
        answer = self.release()
        self.over = not self._blank
        return reasoning, answer

    def _drop_blanks(self) -> None:
        if self._blank:
            self._held = self._held.lstrip()
            self._blank = not self._held


def overlap(text: str, word: str) -> int:
    """The length of the longest end of *text* that *word* begins with, short of the whole word."""
    for length in range(min(len(text), len(word) - 1), 0, -1):
        if text.endswith(word[:length]):
            return length
    return 0
