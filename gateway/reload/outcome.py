"""What came of a reload, as logs, metrics, `/admin/reload` and other processes are told."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.located_yaml import Problem
from gateway.reload.differences import Change

_MOST_IN_LOG: Final = 10


class Outcome(msgspec.Struct, frozen=True):
    """One reload, or the start. Holds no secret."""

    ok: bool
    trigger: str
    """Who asked: ``file``, ``SIGHUP``, ``POST /admin/reload`` or ``start``."""
    at: float
    """Unix time."""
    changed: tuple[Change, ...] = ()
    """What is different now, or would be; empty when the configuration is wrong."""
    needs_restart: tuple[str, ...] = ()
    """Keys that were changed and stay as they are until the gateway is started again."""
    problems: tuple[Problem, ...] = ()
    """Why the old configuration stays in force."""

    def in_words(self) -> str:
        """One line for the log."""
        if not self.ok:
            said = "; ".join(map(str, self.problems[:_MOST_IN_LOG])).replace("\n", " ")
            more = len(self.problems) - _MOST_IN_LOG
            rest = f"; and {more} more" if more > 0 else ""
            return f"the new configuration is wrong, the old one stays in force: {said}{rest}"
        paths = [change.path for change in self.changed]
        if not paths:
            return "the configuration is right; nothing has changed"
        more = len(paths) - _MOST_IN_LOG
        rest = f" and {more} more" if more > 0 else ""
        return f"a new configuration is in force; changed: {', '.join(paths[:_MOST_IN_LOG])}{rest}"

    def as_json(self) -> dict[str, Any]:
        """The outcome as `/admin/reload` tells it."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        return told
