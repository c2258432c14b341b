"""What sets two configurations apart, secrets masked, and what of it a running gateway cannot take over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, Final

import msgspec

from gateway.settings import Settings
from gateway.telemetry.redact import mask

RELOADED_OF_SERVER: Final = frozenset({"request_timeout", "stream_keepalive"})
"""The keys of ``server`` that take effect at once; the others shape sockets and processes that are there already."""

_FIXED_SECTIONS: Final = ("server", "storage", "telemetry")


class Change(msgspec.Struct, frozen=True):
    """One value that differs; None where there was none, or is none any more."""

    path: str
    before: Any = None
    after: Any = None


def differences(old: Settings, new: Settings) -> tuple[Change, ...]:
    """Every value in which *new* differs, in the order of the file's keys; a secret shows as asterisks."""
    shown_old, shown_new = (settings.model_dump(mode="json") for settings in (old, new))
    return tuple(_walk(old.model_dump(), new.model_dump(), shown_old, shown_new, ()))


def keep_until_restart(running: Settings, loaded: Settings) -> tuple[Settings, tuple[str, ...]]:
    """*loaded* as far as the gateway that runs by *running* can take it over, and the keys it cannot."""
    kept: list[str] = []
    for section in _FIXED_SECTIONS:
        before, after = getattr(running, section), getattr(loaded, section)
        fixed = {
            key: getattr(before, key)
            for key in type(before).model_fields
            if not (section == "server" and key in RELOADED_OF_SERVER) and getattr(before, key) != getattr(after, key)
        }
        if fixed:
            kept += [f"{section}.{key}" for key in fixed]
            loaded = loaded.model_copy(update={section: after.model_copy(update=fixed)})
    if loaded.auth.mode == "open" and not loaded.server.loopback:
        # The file is right by the host it names, which is not the one others reach us by.
        kept.append("auth.mode")
        loaded = loaded.model_copy(update={"auth": loaded.auth.model_copy(update={"mode": running.auth.mode})})
    return loaded, tuple(kept)


def _walk(old: Any, new: Any, shown_old: Any, shown_new: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _walk(
                old.get(key), new.get(key), _member(shown_old, key), _member(shown_new, key), (*path, str(key))
            )
    elif isinstance(old, tuple | list) and isinstance(new, tuple | list) and len(old) == len(new):
        for place, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _walk(before, after, shown_old[place], shown_new[place], (*path, str(place)))
    elif old != new:
        yield Change(_dotted(path), _shown(shown_old), _shown(shown_new))


def _member(shown: Any, key: Any) -> Any:
    return shown.get(key) if isinstance(shown, Mapping) else None


def _shown(value: Any) -> Any:
    """*value* without what is not set, and without passwords in addresses."""
    if isinstance(value, Mapping):
        kept = {key: _shown(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in (None, "", {}, [])}
    if isinstance(value, list):
        return [_shown(inner) for inner in value]
    return mask(value) if isinstance(value, str) else value


def _dotted(path: tuple[str, ...]) -> str:
    return reduce(lambda whole, part: f"{whole}[{part}]" if part.isdigit() else f"{whole}.{part}", path)
