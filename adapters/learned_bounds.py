"""Bounds of numbers that a refusal tells: what is beyond them is brought within, or left out where one alone goes."""

from __future__ import annotations

import re
from typing import Final

from adapters.draft import Draft, Unsupported
from adapters.parameter_patches import Clamp
from adapters.told import Told

_ALTERNATIVES: Final = "top_logprobs"
_SAMPLING: Final = (
    "temperature", "top_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "min_p", "top_k",
    _ALTERNATIVES,
)  # fmt: skip
_NUMBER: Final = r"[`'\"]?(-?\d+(?:\.\d+)?)"
_ONE_ALONE: Final = re.compile(
    rf"\bonly {_NUMBER}[`'\"]? is (?:allowed|supported|valid)"
    rf"|\b(?:must|should|has to) be (?:exactly )?{_NUMBER}[`'\"]?(?: (?:for|with|when|in)\b|[.,;]?\s*$)"
)
_BETWEEN: Final = re.compile(rf"\b(?:between|range|from|in)(?: of)? {_NUMBER} ?(?:and|to|-|~) ?{_NUMBER}")
_SPAN: Final = re.compile(rf"([\[(]) ?{_NUMBER}, ?{_NUMBER} ?([\])])")
_LEAST: Final = re.compile(rf"(?:>=|≥|greater than or equal to|at least|no(?:t)? less than|minimum of) ?{_NUMBER}")
_MOST: Final = re.compile(rf"(?:<=|≤|less than or equal to|at most|no(?:t)? more than|up to|maximum of) ?{_NUMBER}")
_ABOVE: Final = re.compile(rf"(?:>|greater than|(?<!no )(?<!not )(?:more|larger) than) ?{_NUMBER}")
_BELOW: Final = re.compile(rf"(?:<|(?<!no )(?<!not )(?:less|smaller|lower) than) ?{_NUMBER}")
_LIMIT: Final = re.compile(r"max_(?:completion_|output_|new_)?tokens")
_HIGHEST_LEAST: Final = 1024


def one_alone(draft: Draft, told: Told) -> str:
    """The number of sampling for which the target takes a single value, its own; empty where that is not said."""
    name = _name(draft, told)
    return name if name and _ONE_ALONE.search(told.text) else ""


def bounds_told(draft: Draft, told: Told, provider: str) -> Clamp | None:
    """What brings a number of *draft* within the bounds that were told; None where it is within, or may not be."""
    name = _name(draft, told)
    if not name or draft.unsupported is Unsupported.REJECT:
        return None
    place = max(told.text.find(name), 0)
    # OpenAI's old words name it last.
    clamp = _clamp(name, provider, told.text if told.text.endswith(f"- '{name}'") else told.text[place:])
    tried = Draft(draft.body.copy(), draft.operation, draft.stream, draft.unsupported)
    clamp(tried)
    return clamp if name in tried.body and tried.body[name] != draft.body[name] else None


def least_told(text: str, asked: int) -> int | None:
    """The least limit of an answer that *text* tells, where what was *asked* is below it; None where none is told.

    A least limit that would cost much more than what was asked for is not followed.
    """
    about = _LIMIT.search(text)
    if about is None:
        return None
    rest = text[about.end() :]
    span = _SPAN.search(rest) or _BETWEEN.search(rest)
    found = _LEAST.search(rest)
    told = span.group(2 if span.re is _SPAN else 1) if span is not None else found.group(1) if found is not None else ""
    return int(told) if told.isdigit() and asked < int(told) <= _HIGHEST_LEAST else None


def _name(draft: Draft, told: Told) -> str:
    if told.named in _SAMPLING:
        return told.named if told.named in draft.body else ""
    named = [name for name in _SAMPLING if name in draft.body and re.search(rf"\b{name}\b", told.text)]
    return named[0] if len(named) == 1 else ""


def _clamp(name: str, provider: str, text: str) -> Clamp:
    lossy = name == _ALTERNATIVES
    if (found := _SPAN.search(text)) is not None:
        least, most = float(found.group(2)), float(found.group(3))
        from_it, to_it = found.group(1) == "[", found.group(4) == "]"
        return Clamp(
            name, provider, low=least if from_it else None, high=most if to_it else None,
            above=None if from_it else least, below=None if to_it else most, whole=_is_whole(name), lossy=lossy,
        )  # fmt: skip
    if (found := _BETWEEN.search(text)) is not None:
        return Clamp(
            name, provider, low=float(found.group(1)), high=float(found.group(2)), whole=_is_whole(name), lossy=lossy
        )
    above = 0.0 if "strictly positive" in text else _first(_ABOVE, text)
    low = 0.0 if "non-negative" in text else _first(_LEAST, text)
    return Clamp(
        name, provider, low=low, high=_first(_MOST, text), above=above, below=_first(_BELOW, text),
        whole=_is_whole(name), lossy=lossy,
    )  # fmt: skip


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return float(found.group(1)) if found is not None else None


def _is_whole(name: str) -> bool:
    return name in ("top_k", _ALTERNATIVES)
