"""What a process that answers requests loads only when it is needed: the list, the reasons, and the way to load it."""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Final

LATE: Final[Mapping[str, str]] = {
    "fastapi": "for administration and /openapi.json; all else is answered without it (gateway/http/front.py)",
    "starlette": "comes with FastAPI",
    "sqlalchemy": "for administration; what requests need is asked in SQL of ours (gateway/storage/statements.py)",
    "alembic": "for a migration, in a process of its own (gateway/storage/prepare.py)",
    "jsonschema_rs": "for a schema that a target cannot be trusted with; 4 ms, so on the spot",
    "httpx2": "for `server.upstream_client: httpx`, and for commands other than `serve`",
}
"""Distributions that are neither on the way of a request nor needed to be ready for one, and what brings them in.

A serving process is started more often than it is administered, and there are several on a machine: together these
would be two fifths of the memory and half of the time to the first answer. A test looks that none of them is there
after a start and a request (tests/integration/test_what_is_loaded.py). What a start has to refuse must not wait.
"""

_loaded: dict[str, ModuleType] = {}


async def load(name: str) -> ModuleType:
    """The module *name*, imported in a thread the first time, while requests go on."""
    module = _loaded.get(name)
    if module is None:
        # Never from `sys.modules`: there it stands half made while another thread still imports it.
        module = _loaded[name] = await asyncio.to_thread(importlib.import_module, name)
        # Where the server has told the garbage collector to leave alone what a start has loaded, this belongs to it.
        if gc.get_freeze_count():
            gc.freeze()
    return module
