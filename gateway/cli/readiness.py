"""Asks a gateway on this machine whether it is ready."""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple
from urllib.parse import urlsplit

_LOOK_AGAIN_SECONDS = 0.1
_ANSWER_SECONDS = 5.0


class Health(NamedTuple):
    """What ``/health/ready`` says: whether requests are answered, and what is amiss, by the name of the check."""

    ready: bool
    problems: dict[str, str]

    @property
    def summary(self) -> str:
        return "; ".join(f"{name}: {reason}" for name, reason in self.problems.items())

    @property
    def settled(self) -> bool:
        """Whether looking again soon would show nothing better."""
        return self.ready and not any("starting" in reason for reason in self.problems.values())


async def wait_until_ready(url: str, timeout_seconds: float = 60.0) -> Health:
    """How the gateway at *url* is as soon as it is ready and nothing is starting any more, or when the time is up."""
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_seconds
    while not (health := await ask_health(url)).settled:
        if loop.time() >= until:
            break
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return health


async def ask_health(url: str) -> Health:
    """One look at ``/health/ready``; a gateway that does not answer is not ready."""
    parts = urlsplit(url)
    writer = None
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    except (OSError, TimeoutError) as error:
        return Health(False, {"gateway": f"it does not answer ({error or 'no answer in time'})"})
    finally:
        if writer is not None:
            writer.close()
    ready = head[9:12] == b"200"
    try:
        checks = json.loads(body)["checks"]
        return Health(ready, {name: check["reason"] for name, check in checks.items() if check.get("reason")})
    except (ValueError, LookupError, TypeError, AttributeError):
        return Health(ready, {} if ready else {"gateway": f"status {head[9:12].decode('latin-1')}"})
