"""Bounds of numbers that a refusal tells: what is beyond them is brought within, or left out where one alone goes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

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
    rf"\bonly {_NUMBER}[`'\"]? is (?:allowed|supported|valid)(?P<only>.*)"
    rf"|\b(?:may|can) only be (?:set to )?{_NUMBER}(?P<set>.*)"
    rf"|\b(?:must|should|has to) be (?:exactly )?{_NUMBER}[`'\"]?(?P<be> (?:for|with|when|while|if|in)\b.*|[.,;]?\s*$)",
    re.DOTALL,
)
_CONDITION: Final = re.compile(r"^[`'\"]? ?(?:for|with|when|while|if|in)\b(?P<which>[^.;]*)")
_REASONING: Final = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs")
_OFF_BELOW_ONE: Final = frozenset(("top_k",))
"""Of these, 0 and less say that nothing is cut off, wherever they are taken; the least of the others cuts all off."""
_BETWEEN: Final = re.compile(rf"\b(?:between|range|from|in)(?: of)? {_NUMBER} ?(?:and|to|-|~) ?{_NUMBER}")
_SPAN: Final = re.compile(rf"([\[(]) ?{_NUMBER}, ?{_NUMBER} ?([\])])")
_NOT: Final = r"(?:not|n't|no) (?:be )?"
_LEAST: Final = re.compile(
    rf"(?:>=|≥|greater than or equal to|at least|{_NOT}(?:less|smaller|lower) than|minimum(?: value)?(?: of| is|:))"
    rf" ?{_NUMBER}"
)
_MOST: Final = re.compile(
    rf"(?:<=|≤|less than or equal to|at most|{_NOT}(?:more|greater|larger|higher) than|up to"
    rf"|{_NOT}exceed|maximum(?: value)?(?: of| is|:)) ?{_NUMBER}"
)
_ABOVE: Final = re.compile(
    rf"(?:>|(?<!no )(?<!not )(?<!not be )(?<!n't be )(?:greater|more|larger|higher) than) ?{_NUMBER}"
)
_BELOW: Final = re.compile(rf"(?:<|(?<!no )(?<!not )(?<!not be )(?<!n't be )(?:less|smaller|lower) than) ?{_NUMBER}")
_SENTENCE: Final = re.compile(r"[.;](?=\s)|\n")
_LIMIT: Final = re.compile(r"max_(?:completion_|output_|new_)?tokens")
_HIGHEST_LEAST: Final = 1024


class OneAlone(NamedTuple):
    """A number of sampling for which the target takes a single value, its own."""

    name: str
    when: str
    """``greedy`` or ``reasoning`` where that holds of such requests alone; empty for all."""


def one_alone(draft: Draft, told: Told) -> OneAlone | None:
    """The number that may go, since the target takes one value alone; None where that is not said, or not of what."""
    name = _name(draft, told)
    found = _ONE_ALONE.search(told.text) if name else None
    if found is None:
        return None
    condition = _CONDITION.match(found["only"] or found["set"] or found["be"] or "")
    if condition is None or "model" in condition["which"]:
        return OneAlone(name, "")
    for when, words in (("greedy", ("greedy", "temperature")), ("reasoning", ("think", "reason"))):
        if any(word in condition["which"] for word in words):
            return OneAlone(name, when) if holds(when, draft) else None
    return None


def holds(when: str, draft: Draft) -> bool:
    """Whether the circumstances of a `OneAlone` are those of a request."""
    if when == "greedy":
        return "temperature" in draft.body and msgspec.json.decode(draft.body["temperature"]) == 0
    return not when or any(name in draft.body for name in _REASONING)


def off_refused(draft: Draft, told: Told) -> str:
    """The number by which the client switches something off, where that was refused; empty where it was not."""
    name = _name(draft, told)
    return name if name and is_off(name, draft) else ""


def is_off(name: str, draft: Draft) -> bool:
    """Whether *name* is in the request, and says that it shall have no effect."""
    number = msgspec.json.decode(draft.body[name]) if name in _OFF_BELOW_ONE and name in draft.body else None
    return isinstance(number, (int, float)) and number <= 0


def bounds_told(draft: Draft, told: Told, provider: str) -> Clamp | None:
    """What brings a number of *draft* within the bounds that were told; None where it is within, or may not be."""
    name = _name(draft, told)
    if not name or draft.unsupported is Unsupported.REJECT:
        return None
    for text in _about(name, told.text):
        clamp = _clamp(name, provider, text)
        tried = Draft(draft.body.copy(), draft.operation, draft.stream, draft.unsupported)
        clamp(tried)
        if name in tried.body and tried.body[name] != draft.body[name]:
            return clamp
    return None


def _about(name: str, text: str) -> list[str]:
    """What *text* says of *name*: the sentence that names it, and those behind it up to one about something else."""
    if text.endswith(f"- '{name}'"):
        return [text]  # OpenAI's old words name it last
    first, *others = _SENTENCE.split(text[max(text.find(name), 0) :])
    about = [first]
    for sentence in others:
        if any(other in sentence for other in _SAMPLING if other != name) or _LIMIT.search(sentence):
            break
        about.append(sentence)
    return about


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
    whole, lossy = name in (*_OFF_BELOW_ONE, _ALTERNATIVES), name == _ALTERNATIVES
    low: float | None
    high: float | None
    above = below = None
    if (found := _SPAN.search(text)) is not None:
        least, most = float(found.group(2)), float(found.group(3))
        low, above = (least, None) if found.group(1) == "[" else (None, least)
        high, below = (most, None) if found.group(4) == "]" else (None, most)
    elif (found := _BETWEEN.search(text)) is not None:
        low, high = float(found.group(1)), float(found.group(2))
    else:
        low = 0.0 if "non-negative" in text else _first(_LEAST, text)
        above = 0.0 if "strictly positive" in text else _first(_ABOVE, text)
        high, below = _first(_MOST, text), _first(_BELOW, text)
    if name in _OFF_BELOW_ONE:
        low = above = None  # brought up to it, what is switched off would cut all off
    return Clamp(name, provider, low=low, high=high, above=above, below=below, whole=whole, lossy=lossy)


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return float(found.group(1)) if found is not None else None
