"""Whether a request fits a target's context window, for targets that would cut it without a word.

Without the model's own tokenizer nobody can tell how many tokens a text has; but no tokenizer makes fewer than a
certain number of it. Only what is past the window by that count is refused here, and it certainly does not fit. What
may or may not fit is sent.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from adapters.errors import ProviderError
from adapters.target import Target
from adapters.types import Body, FailureKind, Operation
from adapters.vocabulary import Overflow

_PROMPTS: Final = {Operation.CHAT: "messages", Operation.COMPLETIONS: "prompt", Operation.EMBEDDINGS: "input"}
_LIMITS: Final = ("max_completion_tokens", "max_tokens")
# Longer tokens exist, but only for one character over and over.
_LONGEST_TOKEN_BYTES: Final = 32
_RUN: Final = re.compile(r"(.)\1{31,}", re.DOTALL)
# Han, kana, Hangul and the like, written without spaces: tokens of more than four of them are rare curiosities.
_DENSE: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_DENSE_CHARACTERS_A_TOKEN: Final = 4


def fits(target: Target, body: Body, operation: Operation) -> bool:
    """False when *body* certainly has more tokens than the target's window; true for an unknown window."""
    return shortfall(target, body, operation) is None


def may_hold_more(target: Target, than: Target) -> bool:
    """Whether a request that was too long for *than* may fit *target*; unknown windows may be any size."""
    if target.context_window is None or than.context_window is None:
        return True
    return target.context_window > than.context_window


def refuse_overflow(target: Target, body: Body, operation: Operation) -> None:
    """`ProviderError` CONTEXT_LENGTH, naming both numbers, when *body* certainly does not fit."""
    found = shortfall(target, body, operation)
    if found is None:
        return
    prompt, answer = found
    asked = f" and {answer} more for the answer" if answer else ""
    raise ProviderError(
        FailureKind.CONTEXT_LENGTH,
        f"{target.provider} has a context window of {target.context_window} tokens for this model; the request needs "
        f"at least {prompt}{asked}. Shorten the prompt, or ask a model with a larger window.",
        param=_PROMPTS[operation],
        sent=False,
    )


def shortfall(target: Target, body: Body, operation: Operation) -> tuple[int, int] | None:
    """The least tokens of the prompt and those wanted for the answer, when they are more than the window holds."""
    window = target.context_window
    if window is None:
        return None
    answer = _wanted(body, target, window) if target.spec.context.overflow is Overflow.LOWERS_LIMIT else 0
    # No tokenizer makes more tokens than there are bytes, so nearly all requests are through here.
    if len(bytes(body.get(_PROMPTS[operation], b""))) + answer <= window:
        return None
    prompt = least_tokens(body, operation)
    return (prompt, answer) if prompt + answer > window else None


def least_tokens(body: Body, operation: Operation) -> int:
    """Tokens that the prompt has at the very least; those of images and other media are not counted."""
    try:
        value = msgspec.json.decode(body.get(_PROMPTS[operation], b"[]"))
    except (msgspec.DecodeError, RecursionError):
        return 0  # whoever reads it will say what is wrong with it
    if operation is Operation.CHAT:
        return sum(_least(text) for text in _texts(value))
    if isinstance(value, list) and value and isinstance(value[0], int):
        return len(value)
    # Several prompts have a window each.
    return max((len(one) if isinstance(one, list) else _least(str(one)) for one in _as_list(value)), default=0)


def _wanted(body: Body, target: Target, window: int) -> int:
    """Tokens that the answer may have by its limit, as it is sent: 0 for one beyond all bounds, which is lowered."""
    asked = _asked(body)
    most = target.max_output_tokens
    if most is not None:
        return min(asked, most)
    return asked if asked < window else 0


def _asked(body: Body) -> int:
    for name in _LIMITS:
        raw = bytes(body.get(name, b""))
        if raw.isdigit() and len(raw) < 10:
            return int(raw)
    return 0


def _texts(messages: Any) -> list[str]:
    """What of a conversation is certainly read by the model as text."""
    found: list[str] = []
    for message in _as_list(messages):
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        if isinstance(content, str):
            found.append(content)
        elif isinstance(content, list):
            found += [
                part["text"]
                for part in content
                if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
            ]
    return found


def _least(text: str) -> int:
    """No token spans two words, and none is longer than about 32 bytes."""
    words = text.split()
    dense = 0 if text.isascii() else len(_DENSE.findall(text)) // _DENSE_CHARACTERS_A_TOKEN
    size = len(_RUN.sub("", "".join(words)).encode("utf-8", "replace"))
    return max(len(words), dense, size // _LONGEST_TOKEN_BYTES)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
