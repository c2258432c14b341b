"""What the local engine has counted of an answer that broke off: its own tokenizer's figures, not an estimate.

The engine is asked for its counts with every token (``timings_per_token``). Of what streams past, the end is kept, and
read only when somebody wants to know.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

from adapters.types import Usage

# A token comes with its alternatives, 3 kB at most; 16 kB hold the last whole one for certain.
_KEPT_BYTES: Final = 16384
_SEVERAL: Final = re.compile(rb'"n"\s*:\s*(?!1\b)\d')
COUNTING: Final = b'{"timings_per_token":true,'
"""How a body begins that asks for counts."""

_TIMINGS: Final = b'"timings":{'
_PROGRESS: Final = b'"prompt_progress":{'


class _Timings(msgspec.Struct):
    prompt_n: int
    cache_n: int = 0
    predicted_n: int = 0


class _Progress(msgspec.Struct):
    total: int
    cache: int = 0


def asking_for_counts(path: str, body: bytes) -> bytes:
    """*body* with the wish for counts, if it asks for text that is generated in one choice; else as it is."""
    if not path.endswith("/completions") or _SEVERAL.search(body) or len(body) < 3 or not body.startswith(b"{"):
        return body
    # In front, so that a value of the client's own, which stands behind it, is the one that counts.
    return COUNTING + body[1:]


_Counts = TypeVar("_Counts", bound=msgspec.Struct)


class StreamCounts:
    """Hears the bytes of a stream; each call of `usage` tells what was consumed up to then."""

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> None:
        self._tail = data[-_KEPT_BYTES:] if len(data) >= _KEPT_BYTES else (self._tail + data)[-_KEPT_BYTES:]

    def usage(self) -> Usage | None:
        """None as long as the engine has told nothing."""
        timings = _last(self._tail, _TIMINGS, _Timings)
        if timings is not None and timings.predicted_n:
            return Usage(timings.cache_n + timings.prompt_n, timings.predicted_n, timings.cache_n)
        # While the prompt is read, those tell how far, and the reports of progress how long it is.
        progress = _last(self._tail, _PROGRESS, _Progress)
        return Usage(progress.total, 0, progress.cache) if progress is not None else None


def _last(data: bytes, mark: bytes, kind: type[_Counts]) -> _Counts | None:
    """The last object behind *mark* that is there to its end. In texts a quotation mark stands behind a backslash."""
    until = len(data)
    while (begin := data.rfind(mark, 0, until)) >= 0:
        end = data.find(b"}", begin)
        if end >= 0:
            try:
                return msgspec.json.decode(data[begin + len(mark) - 1 : end + 1], type=kind)
            except msgspec.DecodeError:
                return None
        until = begin
    return None
