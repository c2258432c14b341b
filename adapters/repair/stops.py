"""Stop texts that a provider could not be given, looked for in what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.repair.thinking import overlap


class StopWatch:
    """Ends a text before the first of some stops, in whatever pieces the text comes.

    What may still become a stop is held back. Of several stops that one counts that is complete first, as for a model
    that is stopped while it writes.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self._tokens: list[tuple[int, dict[str, Any]]] = []
        self._said = self._heard = 0
        self.hit = False

    def feed(self, text: str) -> str:
        """What of the text so far may go out now."""
        if self.hit:
            return ""
        text = self._held + text
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.hit, self._held = True, ""
            return self._say(text[: min(found)[1]])
        kept = max(overlap(text, stop) for stop in self._stops)
        cut = len(text) - kept
        self._held = text[cut:]
        return self._say(text[:cut])

    @property
    def flows(self) -> bool:
        """Whether text goes out as it comes, as far as it `passes`."""
        return not self.hit and not self._held and not self._tokens

    def passes(self, text: str) -> bool:
        """Let *text* go out as it stands, while all `flows`; False, and nothing is done, where a stop may begin."""
        for stop in self._stops:
            if stop[0] in text:
                return False
        self._say(text)
        return True

    def end(self) -> str:
        """What is still held; no stop came after all."""
        held, self._held = self._held, ""
        return self._say(held)

    def note(self, tokens: Sequence[dict[str, Any]]) -> None:
        """Take the logprobs of the text that was just fed."""
        for token in tokens:
            self._heard += len(str(token.get("token") or ""))
            self._tokens.append((self._heard, token))

    def said(self) -> list[dict[str, Any]]:
        """The logprobs, not given before, of the text that has gone out."""
        count = sum(1 for end, _ in self._tokens if end <= self._said)
        given = [token for _, token in self._tokens[:count]]
        del self._tokens[:count]
        return given

    def _say(self, text: str) -> str:
        self._said += len(text)
        return text
