"""The limits a server enforces on a request before and while a handler sees it."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Sizes in bytes, times in seconds; the defaults are those of the documentation."""

    max_body_bytes: int = 20 * MIB
    max_header_bytes: int = 32 * KIB
    max_headers: int = 100
    header_seconds: float = 10.0
    """From the first byte of a request, or from the start of the connection, to the end of its head."""
    body_seconds: float = 30.0
    """To receive the whole body; each further `progress_bytes` received grant the same time again."""
    progress_bytes: int = MIB
    keep_alive_seconds: float = 75.0
    """How long a connection may idle. Longer than the 60 s of common load balancers, which must hang up first."""
    write_stall_seconds: float = 60.0
    """How long a client may take nothing of what waits for it."""
    buffer_bytes: int = 256 * KIB
    """What may wait for a slow client before the handler is asked to pause."""
    linger_seconds: float = 5.0
    """How long input is discarded after a request was refused early, so that the client gets to read why."""
    linger_bytes: int = 64 * MIB
