"""What a provider tells of its limits: what is left, until when, how long to wait; every format in one structure."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.spec import LimitSpec, RateLimitHeadersSpec
from adapters.vocabulary import ResetFormat

MAX_RETRY_AFTER_SECONDS: Final = 300.0
_LONGEST_RESET_SECONDS: Final = 31 * 86_400.0
_MOST: Final = 1e15
_LONGEST_TEXT: Final = 64
# Numbers past these can only be points in time, in seconds and in milliseconds since 1970.
_SINCE_1970: Final = 1e9
_SINCE_1970_MS: Final = 1e12

_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,18})?")
_PART: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ns|us|µs|μs|ms|s|m|h|d)")
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_IN_WORDS: Final = re.compile(
    r"(?:try again|retry|available again|reset\w*)\s+(?:after|in)\s+"
    r"((?:[0-9.]+(?:ms|s|m|h|d))+|[0-9.]+ ?(?:milli)?sec\w*)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit as it stood when the answer was made; None where nothing sensible is told."""

    kind: str
    """What is counted and over which window, as in ``tokens_minute``."""
    limit: float | None
    remaining: float | None
    reset_seconds: float | None


@dataclass(frozen=True, slots=True)
class RateLimits:
    """All limits one answer tells of."""

    limits: tuple[Limit, ...]

    def wait_seconds(self) -> float | None:
        """After a refusal: until what is used up is fresh again; None where that cannot be told.

        A limit without a figure for what is left counts as used up, for then its reset is the wait that is suggested.
        """
        spent = [
            limit.reset_seconds
            for limit in self.limits
            if limit.reset_seconds is not None and (limit.remaining is None or limit.remaining <= 0)
        ]
        return min(max(spent), MAX_RETRY_AFTER_SECONDS) if spent else None


class RateLimitReader:
    """Reads the headers that one provider's file names."""

    __slots__ = ("_format", "_limits")

    def __init__(self, spec: RateLimitHeadersSpec) -> None:
        self._limits = tuple((_kind(limit), limit.limit, limit.remaining, limit.reset) for limit in spec.limits)
        self._format = spec.reset_format

    def __bool__(self) -> bool:
        return bool(self._limits)

    def read(self, headers: Mapping[str, str]) -> RateLimits | None:
        """What *headers*, with names in lower case, tell; None when none of them is there."""
        found = []
        for kind, *names in self._limits:
            limit, remaining, reset = (headers.get(name) if name is not None else None for name in names)
            if limit is None and remaining is None and reset is None:
                continue
            found.append(Limit(kind, _count(limit), _count(remaining), parse_reset(reset, self._format)))
        return RateLimits(tuple(found)) if found else None


def _kind(limit: LimitSpec) -> str:
    return limit.of if limit.per is None else f"{limit.of}_{limit.per}"


def parse_reset(text: str | None, form: ResetFormat | None = None) -> float | None:
    """Seconds from now, from any of the formats; None when absent or nonsense.

    *form* is what the provider's file says; another one is understood as well, since they change without notice.
    """
    if text is None or len(text) > _LONGEST_TEXT:
        return None
    text = text.strip()
    seconds = _duration(text) if form is ResetFormat.GO_DURATION else None
    if seconds is None:
        seconds = _seconds(text)
    if seconds is None:
        seconds = _duration(text)
    if seconds is None:
        seconds = _moment(text)
    return seconds if seconds is not None and seconds <= _LONGEST_RESET_SECONDS else None


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from ``retry-after-ms`` or ``retry-after`` (seconds or a moment); capped, None if absent or nonsense."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, MAX_RETRY_AFTER_SECONDS)
    value = headers.get("retry-after")
    if value is None or len(value) > _LONGEST_TEXT:
        return None
    value = value.strip()
    seconds = _seconds(value)
    if seconds is None:
        seconds = _duration(value)
    if seconds is None:
        seconds = _moment(value)
    return min(seconds, MAX_RETRY_AFTER_SECONDS) if seconds is not None else None


def wait_in_words(message: str) -> float | None:
    """The wait a message asks for, as in "Please try again in 9m38.016s"; capped."""
    found = _IN_WORDS.search(message[:2000])
    if found is None:
        return None
    text = found[1].lower().replace(" ", "")
    seconds = _duration(text)
    if seconds is None:
        number = _number(text.partition("milli")[0].partition("sec")[0])
        seconds = None if number is None else number / 1000 if "milli" in text else number
    return min(seconds, MAX_RETRY_AFTER_SECONDS) if seconds is not None else None


def _count(text: str | None) -> float | None:
    value = _number(text)
    return value if value is not None and value <= _MOST else None


def _number(text: str | None) -> float | None:
    """A number from 0, written in digits: neither a sign, nor an exponent, nor nan has any business here."""
    return float(text) if text is not None and _NUMBER.fullmatch(text.strip()) else None


def _seconds(text: str) -> float | None:
    value = _number(text)
    if value is None or value < _SINCE_1970:
        return value
    # A reset that far away is a point in time.
    return max(0.0, (value / 1000 if value >= _SINCE_1970_MS else value) - time.time())


def _duration(text: str) -> float | None:
    """Go's durations: ``2m59.56s``, ``7.66s``, ``1h0m0s``, ``120ms``."""
    seconds, position = 0.0, 0
    for part in _PART.finditer(text):
        if part.start() != position:
            return None
        seconds += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    return seconds if position and position == len(text) else None


def _moment(text: str) -> float | None:
    """A date of HTTP's kind or RFC 3339's, which is on the wall clock by its nature."""
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
    if moment.tzinfo is None:
        return None
    try:
        return max(0.0, moment.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
