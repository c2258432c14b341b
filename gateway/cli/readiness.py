"""Asks a gateway on this machine whether it is ready."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

_LOOK_AGAIN_SECONDS = 0.1
_ANSWER_SECONDS = 5.0


async def wait_until_ready(url: str, timeout_seconds: float = 60.0) -> str:
    """Return an empty string as soon as the gateway at *url* is ready, or why it is not when the time is up."""
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_seconds
    while reason := await why_not_ready(url):
        if loop.time() >= until:
            return reason
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return ""


async def why_not_ready(url: str) -> str:
    """The failed checks of ``/health/ready``, in one line; empty when there are none."""
    parts = urlsplit(url)
    writer = None
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    except (OSError, TimeoutError) as error:
        return f"it does not answer ({error or 'no answer in time'})"
    finally:
        if writer is not None:
            writer.close()
    if head[9:12] == b"200":
        return ""
    try:
        checks = json.loads(body)["checks"]
        return "; ".join(f"{name}: {check['reason']}" for name, check in checks.items() if check.get("reason"))
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"status {head[9:12].decode('latin-1')}"
