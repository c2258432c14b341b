"""The figures of a ``usage``: all three that clients read, as whole numbers, as far as it tells them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.repair.chunk import number_of, object_of, value_of
from adapters.usage import MOST_TOKENS, are_all_there

_PROMPT, _WRITTEN, _TOTAL = "prompt_tokens", "completion_tokens", "total_tokens"
_ELSEWHERE: Final = {_PROMPT: "input_tokens", _WRITTEN: "output_tokens"}
"""What the API of responses calls them, and Anthropic's."""


def complete(top: dict[str, Any]) -> bool:
    """Complete the usage in *top*; tells whether there was anything to do.

    Some leave out the total, or what was written when all of it was thought (modelscope/evalscope#1432,
    SecretiveShell/MCP-Bridge#48); some write counts as 12.0 or "12". One that does not even tell the prompt is none.
    """
    found = top.get("usage")
    if not isinstance(found, msgspec.Raw) or are_all_there(found):
        return False
    usage = object_of(found)
    prompt, written, total = _count(usage, _PROMPT), _count(usage, _WRITTEN), _count(usage, _TOTAL)
    if prompt is None:
        del top["usage"]
        return True
    if written is None:
        written = max(0, (total or 0) - prompt)
    told = {name: value for name, value in usage.items() if name not in _ELSEWHERE.values()}
    top["usage"] = {**told, _PROMPT: prompt, _WRITTEN: written, _TOTAL: total or prompt + written}
    return True


def _count(usage: dict[str, Any], name: str) -> int | None:
    """The count of that *name*, or else of its name elsewhere; None where it makes no sense."""
    value = value_of(usage.get(name))
    if value is None:
        value = value_of(usage.get(_ELSEWHERE.get(name, "")))
    number = number_of(value)
    return int(number) if number is not None and 0 <= number <= MOST_TOKENS else None
