"""Patches for how much a model thinks, of which each model has words of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.parameter_patches import raw
from adapters.patches import leave_out, unsupported
from adapters.types import Action

_decode = msgspec.json.Decoder().decode

_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Reasoning efforts, rising."""


def switch_off(draft: Draft, off: Mapping[str, Any]) -> None:
    """Add the members that stop a model from thinking; what else the client says in them stays."""
    for name, value in off.items():
        said = _decode(draft.body[name]) if name in draft.body else None
        draft.body[name] = raw({**said, **value} if isinstance(said, dict) and isinstance(value, dict) else value)


@dataclass(frozen=True, slots=True)
class Effort:
    """Send the nearest reasoning effort the model knows: the file's own word first, then the nearest on the scale.

    ``none`` becomes *off*, the members that switch thinking off, where the model does not know the word, else the
    lowest effort. A model that knows no efforts can still be told not to think.
    """

    provider: str
    allowed: tuple[str, ...]
    words: Mapping[str, str]
    off: Mapping[str, Any]

    def __call__(self, draft: Draft) -> None:
        param = "reasoning_effort"
        given = _decode(draft.body[param])
        if given is None:
            del draft.body[param]
            return
        if not isinstance(given, str) or given in self.allowed:
            return
        if given == "none" and self.off:
            del draft.body[param]
            switch_off(draft, self.off)
            draft.adjusted(param, Action.MAPPED)
            return
        word = self.words.get(given)
        if word not in self.allowed:
            word = self._nearest(given)
        if word is None:
            leave_out(draft, param, self.provider, f"It takes: {', '.join(self.allowed)}." if self.allowed else "")
            return
        if draft.unsupported is Unsupported.REJECT:
            raise unsupported(param, self.provider, f"It takes: {', '.join(self.allowed)}.")
        draft.body[param] = raw(word)
        draft.adjusted(param, Action.MAPPED)

    def _nearest(self, given: str) -> str | None:
        if given not in _EFFORTS:
            return None
        wanted = _EFFORTS.index(given)
        known = [word for word in self.allowed if word in _EFFORTS]
        if given != "none":
            # Who asks for little thinking does ask for some.
            known = [word for word in known if word != "none"]
        if known:
            return min(known, key=lambda word: abs(_EFFORTS.index(word) - wanted))
        return "default" if "default" in self.allowed and given != "none" else None
