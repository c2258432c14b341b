"""The `gateway` command, with the configuration keys that it reads in FILE: `... recorded_settings FILE serve`."""

from __future__ import annotations

import atexit
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from gateway.cli.main import main
from gateway.config import provider_settings, schema
from gateway.config.section import Section

# Modules that look at keys without acting on them: they check, mask, compare or print the configuration.
ONLY_LOOKING = ("gateway.config", "gateway.settings", "gateway.reload.differences", "gateway.cli.config")

_read: set[tuple[str, str, str]] = set()


def _acting(frame: FrameType | None) -> bool:
    # A property of the schema, which is asked for through this module too, reads on behalf of whoever asked for it.
    while frame is not None and frame.f_globals["__name__"] in (schema.__name__, provider_settings.__name__, __name__):
        frame = frame.f_back
    name = frame.f_globals["__name__"] if frame is not None else ""
    return name.startswith("gateway.") and not name.startswith(ONLY_LOOKING)


def _record(section: Any, name: str) -> Any:
    fields = type.__getattribute__(type(section), "__pydantic_fields__")
    if name in fields and _acting(sys._getframe(1)):
        kind = object.__getattribute__(section, "__dict__").get("type", "")
        _read.add((type(section).__name__, kind, name))
    return object.__getattribute__(section, name)


def _write(path: Path) -> None:
    path.write_text(json.dumps(sorted(_read)))


if __name__ == "__main__":
    atexit.register(_write, Path(sys.argv[1]))
    for section in (Section, schema.Settings):
        setattr(section, "__getattribute__", _record)  # noqa: B010 - mypy takes no assignment to a method
    main(sys.argv[2:])
