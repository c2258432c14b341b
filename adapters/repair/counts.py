"""The figures of a ``usage``: all three that clients read, as far as two tell the third."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.repair.chunk import object_of
from adapters.usage import are_all_there

_NAMES: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def complete(top: dict[str, Any]) -> bool:
    """Complete the usage in *top*; tells whether there was anything to do.

    Some leave out the total, or what was written when all of it was thought (modelscope/evalscope#1432,
    SecretiveShell/MCP-Bridge#48).
    """
    found = top.get("usage")
    if not isinstance(found, msgspec.Raw) or are_all_there(found):
        return False
    usage = object_of(found)
    counts = {name: msgspec.json.decode(usage[name]) for name in _NAMES if name in usage}
    if not all(isinstance(count, int) for count in counts.values()) or "prompt_tokens" not in counts:
        return False
    prompt = counts["prompt_tokens"]
    written = counts.get("completion_tokens", max(0, counts.get("total_tokens", prompt) - prompt))
    top["usage"] = {**usage, "completion_tokens": written, "total_tokens": counts.get("total_tokens", prompt + written)}
    return True
