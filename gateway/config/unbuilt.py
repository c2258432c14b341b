"""Keys of the configuration's design that this version does not act on yet.

Accepting one without effect would let somebody believe in a fallback or a limit that is not there. A value that means
"off" is harmless and taken out of the tree, so that a file written for a later version can be tried with this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from adapters.located_yaml import Path


def _set(value: Any) -> bool:
    return value not in (None, "", {}, [])


def _always(_: Any) -> bool:
    return True


def _other_than(*off: Any) -> Callable[[Any], bool]:
    return lambda value: _set(value) and value not in off


_ANY = "*"
_REFUSED: tuple[tuple[tuple[str, ...], Callable[[Any], bool]], ...] = (
    (("policies",), _set),
    (("limits",), _set),
    (("errors",), _set),
    (("ui",), _set),
    (("auth", "oidc"), _always),
    (("storage", "redis_url"), _set),
    (("storage", "log_bodies"), _other_than("never")),
    (("storage", "retention"), _set),
    (("telemetry", "otlp_endpoint"), _set),
    (("telemetry", "capture_content"), _other_than(False, "false")),
    (("providers", _ANY, "health"), _set),
    (("providers", _ANY, "propagate_trace"), _other_than(False, "false")),
    (("models", _ANY, "fallback"), _set),
    (("models", _ANY, "fallback_on"), _set),
    (("models", _ANY, "shadow"), _set),
    (("models", _ANY, "limits"), _set),
    (("models", _ANY, "route", "require"), _set),
    (("models", _ANY, "route", "max_ttft"), _set),
    (("models", _ANY, "route", "sticky"), _set),
    (("models", _ANY, "targets", _ANY, "limits"), _set),
)
_REFUSED_VALUES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("auth", "mode"): ("oidc",),
    ("models", _ANY, "route", "strategy"): ("cheapest", "fastest", "least_busy"),
}
SECTIONS = tuple(pattern[0] for pattern, _ in _REFUSED if len(pattern) == 1)
"""Whole sections that are not built."""

MESSAGE = "is not built yet in this version; remove it"


def take_out_unbuilt(tree: dict[str, Any]) -> Iterator[tuple[Path, bool, str]]:
    """Remove from *tree* every key that is known but not built, yielding those that ask for something.

    Each comes with its path, whether the key itself is meant rather than its value, and a message.
    """
    for pattern, asks in _REFUSED:
        for parent, path in list(_matches(tree, pattern)):
            value = parent.pop(pattern[-1])
            if asks(value):
                yield path, True, f"'{path[-1]}' {MESSAGE}"
    for pattern, values in _REFUSED_VALUES.items():
        for parent, path in list(_matches(tree, pattern)):
            if parent[pattern[-1]] in values:
                value = parent.pop(pattern[-1])
                yield path, False, f"'{value}' {MESSAGE}"


def is_built(pattern: tuple[str, ...], value: Any) -> bool:
    """Whether a file may hold *value* at *pattern*, a path with ``*`` for names and places in lists."""
    asks = next((asks for known, asks in _REFUSED if known == pattern[: len(known)]), None)
    return not (asks is not None and asks(value)) and value not in _REFUSED_VALUES.get(pattern, ())


def _matches(value: Any, pattern: tuple[str, ...], path: Path = ()) -> Iterator[tuple[dict[str, Any], Path]]:
    """The mappings that hold the last key of *pattern*, with the path of that key."""
    first, *rest = pattern
    if isinstance(value, list):
        items: Iterator[tuple[Any, Any]] = enumerate(value) if first == _ANY else iter(())
    elif isinstance(value, dict):
        items = iter(value.items()) if first == _ANY else iter([(first, value[first])] if first in value else [])
    else:
        return
    for key, inner in items:
        if rest:
            yield from _matches(inner, tuple(rest), (*path, key))
        elif isinstance(value, dict):
            yield value, (*path, key)
