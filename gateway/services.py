"""Everything that lives as long as the gateway does; built once in `app.py` and handed to whoever needs it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gateway.deadlines import Deadlines

if TYPE_CHECKING:
    from gateway.catalog import Catalog
    from gateway.pipeline.authenticate import Authenticator
    from gateway.pipeline.backends import Backends
    from gateway.pipeline.call import Call
    from gateway.pipeline.holds import Ledger
    from gateway.pipeline.settle import Settlements
    from gateway.reload.reloader import Reloads
    from gateway.settings import Settings
    from gateway.storage.database import Database
    from gateway.storage.keys import KeyStore
    from gateway.storage.requests import RequestLog
    from gateway.telemetry.metrics import Metrics
    from gateway.upstream.fetch import Fetcher

HOP_HEADER: Final = b"x-gateway-hop"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the file decides, and all that follows from it. Never changes; a reload builds another."""

    settings: Settings
    catalog: Catalog
    backends: Backends
    bridges: Mapping[str, str] = field(default_factory=dict)
    """Where each bridge listens, by its provider's name."""


@dataclass(slots=True)
class Services:
    """The parts of one running worker."""

    current: Configuration
    """The configuration in force. A reload replaces it between two requests: whoever serves one reads this once."""
    database: Database
    keys: KeyStore
    authenticator: Authenticator
    requests: RequestLog
    metrics: Metrics
    ledger: Ledger
    settlements: Settlements
    fetcher: Fetcher
    clock: Callable[[], float] = time.monotonic
    """Seconds; what every limit and duration of a request is measured by. Not the loop's own clock: uvloop's counts
    whole milliseconds, of which a request takes none."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    in_flight: set[Call] = field(default_factory=set)
    """The calls that were admitted and are not over."""
    instance_id: bytes = field(default_factory=lambda: secrets.token_hex(8).encode())
    """Marks our own requests, so that a loop through ourselves is noticed (X29)."""
    hop_header: bytes = field(init=False)
    reloads: Reloads = field(init=False)
    draining: bool = False
    """Set on SIGTERM: readiness fails and new requests are refused with 503 `draining`."""

    def __post_init__(self) -> None:
        self.hop_header = b"%b: %b\r\n" % (HOP_HEADER, self.instance_id)

    @property
    def settings(self) -> Settings:
        """Those in force now, for whoever needs nothing else of the configuration."""
        return self.current.settings

    @property
    def catalog(self) -> Catalog:
        """That in force now."""
        return self.current.catalog

    @property
    def backends(self) -> Backends:
        """Those in force now."""
        return self.current.backends

    def hop_header_after(self, hops: bytes) -> bytes:
        """The header line of a request that came by way of *hops*: a loop may have several gateways in it."""
        return b"%b: %b, %b\r\n" % (HOP_HEADER, hops, self.instance_id)
