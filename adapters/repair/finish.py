"""Finish reasons: from what providers say to the five words that OpenAI's clients know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STOP: Final = "stop"
TOOL_CALLS: Final = "tool_calls"
FUNCTION_CALL: Final = "function_call"
FAILED: Final = "error"
"""What a reason is read as that tells of a failure, not of an end."""

_KNOWN: Final = frozenset((STOP, "length", TOOL_CALLS, "content_filter", FUNCTION_CALL))
_CUT: Final = frozenset(("length", "content_filter"))
PLAIN_ENDS: Final = frozenset((STOP, *_CUT))
"""What is true of a choice without calls."""
# Not a reason at all, however it is written: ollama/ollama#4357, Ai00-X/ai00_server#90.
_NONE: Final = frozenset(("", "null", "none"))
# Words with one meaning wherever they were seen; a provider's own file comes before them.
_ANYWHERE: Final[Mapping[str, str]] = {
    "eos": STOP,
    "eos_token": STOP,
    "stop_sequence": STOP,
    "stop_token": STOP,
    "end_turn": STOP,
    "complete": STOP,
    "max_tokens": "length",
    "max_output_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_use": TOOL_CALLS,
    "tool_call": TOOL_CALLS,
    "safety": "content_filter",
    "sensitive": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "abort": FAILED,
    "error": FAILED,
    "insufficient_system_resource": FAILED,
    "network_error": FAILED,
}


class FinishReasons:
    """The rule for one provider, compiled from its file."""

    def __init__(self, nonstandard: Mapping[str, str], missing: str | None = None) -> None:
        self._map = {**_ANYWHERE, **{word.lower(): str(meaning) for word, meaning in nonstandard.items()}}
        self.missing = None if missing is None else str(missing)
        """What it means that a whole answer has none; None where such an answer broke off."""

    def read(self, reason: object) -> str | None:
        """One of OpenAI's words, `FAILED`, or None where the choice goes on; an unknown word is a `STOP`.

        Typed clients throw at a word they do not know (openai/openai-dotnet#267), so that none may be passed on.
        """
        if not isinstance(reason, str):
            return None
        if reason in _KNOWN:
            return reason
        word = reason.strip().lower()
        if word in _NONE:
            return None
        found = self._map.get(word, word)
        return found if found in _KNOWN or found == FAILED else STOP


def settled(reason: str, calls: int, function_call: bool, named: bool) -> str:
    """*reason* in view of what the choice holds: clients act on calls only when the reason says that there are some.

    With a *named* tool OpenAI itself says ``stop`` beside the call. An answer that was cut keeps saying so
    (vllm-project/vllm#53269).
    """
    if reason in _CUT:
        return reason
    if calls:
        return STOP if named and reason == STOP else TOOL_CALLS
    if function_call:
        return reason if reason == STOP and named else FUNCTION_CALL
    return STOP


def was_cut(reason: str) -> bool:
    """Whether the answer ended before its end, so that nothing in it may be completed."""
    return reason in _CUT
