"""Patches for how long an answer may be, which has two names at OpenAI, and one or the other elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.patches import InTurn, Patch, unsupported
from adapters.pricing import estimated_tokens, prompt_bytes
from adapters.types import Action, Operation

OLD_LIMIT: Final = "max_tokens"
NEW_LIMIT: Final = "max_completion_tokens"
DEFAULT_LIMIT: Final = 4096
"""For answers that need a limit and were given none."""


@dataclass(frozen=True, slots=True)
class OutputLimit:
    """Send one limit for the answer: the newer name's value where both came, under the name the target knows.

    A limit above *most* is lowered to it, and one below *least* raised; where no *most* is known, one that not even an
    empty prompt leaves room for in the *window* is lowered to what this prompt leaves. *name* is None where the target
    knows both names; text completions have the old one alone.
    """

    provider: str
    name: str | None
    most: int | None
    window: int | None = None
    least: int | None = None

    def __call__(self, draft: Draft) -> None:
        body = draft.body
        newer, older = _given(draft, NEW_LIMIT), _given(draft, OLD_LIMIT)
        if newer is None and older is None:
            return
        given = NEW_LIMIT if newer is not None else OLD_LIMIT
        value = newer if newer is not None else older
        assert value is not None
        if newer is not None and older is not None:
            del body[OLD_LIMIT]
            if bytes(newer) != bytes(older):
                draft.adjusted(OLD_LIMIT, Action.DROPPED)
        most = self._most(draft, int(bytes(value)))
        if most is not None:
            if draft.unsupported is Unsupported.REJECT:
                raise unsupported(given, self.provider, f"Its answers have at most {most} tokens.")
            value = msgspec.Raw(b"%d" % most)
            draft.adjusted(given, Action.CLAMPED)
            draft.lossy = True
        elif self.least is not None and int(bytes(value)) < self.least:
            if draft.unsupported is Unsupported.REJECT:
                raise unsupported(given, self.provider, f"It takes no limit below {self.least} tokens.")
            value = msgspec.Raw(b"%d" % self.least)
            draft.adjusted(given, Action.CLAMPED)
            draft.lossy = True
        name = OLD_LIMIT if draft.operation is Operation.COMPLETIONS else self.name or given
        if name != given:
            del body[given]
            draft.adjusted(given, Action.RENAMED)
        body[name] = value

    def _most(self, draft: Draft, asked: int) -> int | None:
        """What to lower the limit *asked* to; None where it may stay."""
        if self.most is not None:
            return self.most if asked > self.most else None
        if self.window is None or asked < self.window:
            return None
        prompt = prompt_bytes(draft.body)
        # No prompt has more tokens than bytes; of a long one that would leave nothing, so it is estimated.
        room = self.window - (prompt if prompt < self.window // 4 else estimated_tokens(prompt))
        return max(1, room)


def with_limit(
    patches: Mapping[str, Patch], name: str | None, most: int | None, least: int | None = None
) -> dict[str, Patch]:
    """*patches* with limits said by *name*, none above *most*, none below *least*; what is None stays as it was."""

    def changed(patch: Patch) -> Patch:
        if isinstance(patch, InTurn):
            return replace(patch, patches=tuple(map(changed, patch.patches)))
        if not isinstance(patch, OutputLimit):
            return patch
        return replace(
            patch,
            name=name or patch.name,
            most=patch.most if most is None else most,
            least=patch.least if least is None else least,
        )

    made = {param: changed(patch) if param in (OLD_LIMIT, NEW_LIMIT) else patch for param, patch in patches.items()}
    if OLD_LIMIT not in made and NEW_LIMIT in made:
        made[OLD_LIMIT] = made[NEW_LIMIT]
    return made


@dataclass(frozen=True, slots=True)
class SendLimit:
    """Limit the answer of a client that does not: what the target does by itself is worse."""

    name: str
    tokens: int

    def __call__(self, draft: Draft) -> None:
        if OLD_LIMIT in draft.body or NEW_LIMIT in draft.body:
            return
        name = OLD_LIMIT if draft.operation is Operation.COMPLETIONS else self.name
        draft.body[name] = msgspec.Raw(b"%d" % self.tokens)
        draft.adjusted(name, Action.CLAMPED)


def _given(draft: Draft, name: str) -> msgspec.Raw | None:
    value = draft.body.get(name)
    if value is not None and bytes(value) == b"null":
        del draft.body[name]
        return None
    return value
