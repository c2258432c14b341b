"""Patches for log probabilities, of which OpenAI's are a flag and a number, and others' one number.

Both forms are understood from every client: the number alone is what Together's SDK sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from adapters.draft import Draft
from adapters.parameter_patches import Clamp
from adapters.patches import Patch
from adapters.types import Action, Operation

_OFF: Final = (b"null", b"false")
_TRUE: Final = msgspec.Raw(b"true")


def _asked(draft: Draft) -> bool:
    """Whether log probabilities are asked for, in either form."""
    return bytes(draft.body.get("logprobs", b"null")) not in (*_OFF, b"0")


@dataclass(frozen=True, slots=True)
class AsFlag:
    """Say a client's number as ``logprobs: true`` with ``top_logprobs``, which is what OpenAI takes."""

    most: int | None = None
    lacking: Patch | None = None
    """What becomes of ``top_logprobs`` where the target has none."""

    def __call__(self, draft: Draft) -> None:
        if draft.operation is not Operation.CHAT:
            return
        given = bytes(draft.body["logprobs"])
        if not given.isdigit():
            return
        if given == b"0":
            del draft.body["logprobs"]
            return
        draft.body["logprobs"] = _TRUE
        draft.adjusted("logprobs", Action.MAPPED)
        if "top_logprobs" in draft.body:
            return
        if self.most is not None and int(given) > self.most:
            given = b"%d" % self.most
            draft.adjusted("top_logprobs", Action.CLAMPED)
            draft.lossy = True
        draft.body["top_logprobs"] = msgspec.Raw(given)
        if self.lacking is not None:
            self.lacking(draft)


@dataclass(frozen=True, slots=True)
class AsCount:
    """Say flag and number as one number: at least 1, at most *most*."""

    most: int | None = None

    def __call__(self, draft: Draft) -> None:
        if draft.operation is not Operation.CHAT:
            return
        body = draft.body
        alternatives = body.pop("top_logprobs", None)
        flag = bytes(body.get("logprobs", b"null"))
        wanted = int(bytes(alternatives)) if alternatives is not None and bytes(alternatives).isdigit() else 0
        if flag.isdigit():
            wanted = max(wanted, int(flag))
        if flag in _OFF and not wanted:
            body.pop("logprobs", None)
            return
        if flag == b"0" and not wanted:
            del body["logprobs"]
            return
        count = max(1, wanted)
        if self.most is not None and count > self.most:
            count = self.most
            draft.adjusted("top_logprobs", Action.CLAMPED)
            draft.lossy = True
        body["logprobs"] = msgspec.Raw(b"%d" % count)
        needs = draft.answer_needs()
        needs.logprobs, needs.top_logprobs = True, min(wanted, count)
        if not flag.isdigit():
            draft.adjusted("logprobs", Action.MAPPED)
            if wanted:
                draft.adjusted("top_logprobs", Action.RENAMED)


@dataclass(frozen=True, slots=True)
class WantShape:
    """Have the answer's log probabilities brought into OpenAI's shape."""

    def __call__(self, draft: Draft) -> None:
        if draft.operation is not Operation.CHAT or not _asked(draft):
            return
        needs = draft.answer_needs()
        needs.logprobs = True
        flag, alternatives = bytes(draft.body["logprobs"]), bytes(draft.body.get("top_logprobs", b"0"))
        if flag.isdigit():
            needs.top_logprobs = int(flag)
        elif alternatives.isdigit():
            needs.top_logprobs = int(alternatives)


@dataclass(frozen=True, slots=True)
class SetLogprobs:
    """Ask for log probabilities where only the number of alternatives was given."""

    def __call__(self, draft: Draft) -> None:
        if "logprobs" not in draft.body and bytes(draft.body["top_logprobs"]) not in (b"null", b"0"):
            draft.body["logprobs"] = _TRUE
            draft.adjusted("logprobs", Action.REWRITTEN)


def alternatives_within(provider: str, most: float) -> Clamp:
    """``top_logprobs`` lowered to *most*; a target that gives as many as were asked for goes first."""
    return Clamp("top_logprobs", provider, high=most, whole=True, lossy=True)
