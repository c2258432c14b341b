"""Notices that the configuration file says something else, however its editor or Kubernetes writes it."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

from gateway.reload.source import Source

_QUIET_MS: Final = 150
"""A change is told when nothing has happened for this long: editors write in several steps."""
_LATEST_MS: Final = 1_000
"""It is told by then in any case; a database in the same folder may never be quiet."""
_LOOK_ANYWAY_MS: Final = 5_000
"""Some file systems tell nobody of a change: network mounts, folders shared with a virtual machine."""
_AGAIN_SECONDS: Final = 5.0
_MOST_LINKS: Final = 40

_log = logging.getLogger(__name__)


async def watch(source: Source, on_change: Callable[[], Awaitable[object]]) -> None:
    """Call *on_change* whenever the file of *source* differs from what was last loaded, until cancelled.

    Folders are watched, not the file: a file that is replaced is another one, and the old one would be watched for
    ever. A link is watched where it lies and where it leads, so that turning it elsewhere is noticed.
    """
    path = source.path
    if path is None or not path.is_file():
        return
    # It imports half a framework; requests need not wait for that.
    await asyncio.to_thread(importlib.import_module, "watchfiles")
    told = False
    while True:
        try:
            await _watch_until_moved(path, source, on_change)
        except (OSError, RuntimeError) as error:  # what watchfiles raises when the system has no more watches to give
            if not told:
                _log.warning("%s cannot be watched, only looked at every %.0f s: %s", path, _AGAIN_SECONDS, error)
                told = True
            await asyncio.sleep(_AGAIN_SECONDS)
            if source.has_changed():
                await on_change()


async def _watch_until_moved(path: Path, source: Source, on_change: Callable[[], Awaitable[object]]) -> None:
    """Watch until other folders have to be watched, because a link leads elsewhere."""
    from watchfiles import awatch

    entries = set(entries_of(path))
    names = {entry.name for entry in entries}
    events = awatch(
        *{entry.parent for entry in entries},
        watch_filter=lambda _, changed: Path(changed).name in names,
        step=_QUIET_MS,
        debounce=_LATEST_MS,
        rust_timeout=_LOOK_ANYWAY_MS,
        yield_on_timeout=True,
        recursive=False,
    )
    try:
        async for _ in events:
            if source.has_changed():
                await on_change()
            if set(entries_of(path)) != entries:
                return
    finally:
        await events.aclose()


def entries_of(path: Path) -> Iterator[Path]:
    """Every entry of a folder that decides what is read at *path*: each link on the way, and the file in the end."""
    path = path.absolute()
    for _ in range(_MOST_LINKS):
        link = next((part for part in (*reversed(path.parents), path) if part.is_symlink()), None)
        if link is None:
            break
        yield link
        path = link.parent / link.readlink() / path.relative_to(link)
    yield path
