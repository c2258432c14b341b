"""Tells the two meanings of SIGHUP apart: read your configuration again, and the terminal is gone."""

from __future__ import annotations

import os
from typing import Final

RELOAD_SIGNAL: Final = "SIGHUP"
"""How outcomes name the signal that asked for them."""


class Terminal:
    """The terminal a program was started from, if it was. The kernel takes it away before it sends the signal."""

    def __init__(self) -> None:
        self._was_there = _is_there()

    @property
    def is_gone(self) -> bool:
        return self._was_there and not _is_there()


def _is_there() -> bool:
    return os.isatty(0)
