"""What a simulated answer says about tokens, times and its own number, in the provider's own fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.spec import ProviderSpec

# `name`, `name.inner`, `name{a,b}`, each perhaps with a remark in parentheses.
_EXTENSION: Final = re.compile(r"([\w.]+)(?:\{([\w,. ]+)\})?(?:\s*\(([^)]*)\))?")
_HEADERS: Final = re.compile(r"headers? ([\w-]+(?:, [\w-]+)*)")
_DETAILS: Final = ("prompt_tokens_details", "completion_tokens_details")
_SECONDS: Final = 0.001


@dataclass(frozen=True, slots=True)
class Counted:
    """The tokens of one answer."""

    prompt: int
    completion: int
    reasoning: int = 0


@dataclass(slots=True)
class _Places:
    usage: dict[str, Any] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)


class UsageWriter:
    """Writes the usage of one provider's answers."""

    def __init__(self, spec: ProviderSpec) -> None:
        self._extensions = [found for text in spec.usage.extensions if (found := _EXTENSION.fullmatch(text))]
        named = [found for text in spec.usage.extensions if (found := _HEADERS.fullmatch(text))]
        self.headers = tuple(name for found in named for name in found[1].split(", "))
        """Headers that tell counts of tokens or times."""

    def usage(self, counted: Counted) -> dict[str, Any]:
        """The ``usage`` object."""
        total = counted.prompt + counted.completion
        usage: dict[str, Any] = {
            "prompt_tokens": counted.prompt,
            "completion_tokens": counted.completion,
            "total_tokens": total,
        }
        return usage | self._places(counted).usage

    def beside(self, counted: Counted, request_id: str) -> dict[str, Any]:
        """Further members of an answer, beside its ``usage``."""
        top = self._places(counted).top
        for member in top.values():
            if isinstance(member, dict) and "id" in member:
                member["id"] = request_id
        return top

    def header_values(self, counted: Counted) -> dict[str, str]:
        """The headers that go with a whole answer."""
        return {name: _header(name, counted) for name in self.headers}

    def _places(self, counted: Counted) -> _Places:
        places = _Places()
        for found in self._extensions:
            path, inner, remark = found[1].split("."), found[2], found[3] or ""
            if inner is not None:
                members = {name.strip(): _value(name.strip(), counted) for name in inner.split(",")}
                places.top[path[0]] = members
            elif len(path) > 1 and path[0] not in _DETAILS:
                _put(places.top, path, _value(path[-1], counted) if path[-1] != "id" else "")
            elif not remark.startswith("--"):  # which would be only with an option of the server
                value = _value(path[-1], counted)
                if value is not None:
                    _put(places.usage, path, value)
        return places


def _put(members: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        members = members.setdefault(name, {})
    members[path[-1]] = value


def _value(name: str, counted: Counted) -> Any:
    if name == "reasoning_tokens":
        return counted.reasoning
    if name.endswith(("_tokens", "_n", "seed")):
        return {"prompt_n": counted.prompt, "predicted_n": counted.completion}.get(name, 0)
    if name.endswith(("_time", "_ms", "created")) or "per_second" in name:
        return _SECONDS
    return None


def _header(name: str, counted: Counted) -> str:
    if name.endswith("cached-prompt-tokens"):
        return "0"
    return str(counted.prompt) if name.endswith("tokens") else str(_SECONDS)
