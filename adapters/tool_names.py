"""Names of tools that some targets refuse, and what is sent in their place: one name for one, told from it alone.

Letters, digits, ``_`` and ``-``, at most 64 of them and no digit first, are taken everywhere. Names with dots, slashes
or blanks, as servers of MCP have them, keep what can be read of them and get a mark of their own, so that neither the
other tools of a request nor the turn it comes in matter, and what the model calls can be told as the client's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

_MOST: Final = 64
_MARK: Final = 6
_PLAIN: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]")


def is_plain(name: str) -> bool:
    """Whether all targets take *name*."""
    return _PLAIN.fullmatch(name) is not None


def plain_name(name: str) -> str:
    """The name by which a target knows the tool *name*, which is itself where that is plain."""
    if is_plain(name):
        return name
    mark = sha256(name.encode()).hexdigest()[:_MARK]
    return f"{_readable(name)[: _MOST - _MARK - 1]}_{mark}"


def own_name(offered: Iterable[str], called: str) -> str | None:
    """The one of the *offered* tools that is *called* by its plain name, or by that without its mark; None: none is."""
    odd = [name for name in offered if not is_plain(name)]
    found = [name for name in odd if plain_name(name) == called] or [name for name in odd if _readable(name) == called]
    return found[0] if len(found) == 1 else None


def _readable(name: str) -> str:
    readable = _ODD.sub("_", name)
    return readable if readable[:1].isalpha() or readable[:1] == "_" else f"_{readable}"
