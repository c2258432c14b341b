"""Everything that lives as long as the gateway does; built once in `app.py` and handed to whoever needs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.deadlines import Deadlines

if TYPE_CHECKING:
    from gateway.catalog import Catalog
    from gateway.pipeline.authenticate import Authenticator
    from gateway.pipeline.backends import Backends
    from gateway.settings import Settings
    from gateway.storage.database import Database
    from gateway.storage.keys import KeyStore
    from gateway.storage.requests import RequestLog
    from gateway.telemetry.metrics import Metrics


@dataclass(slots=True)
class Services:
    """The parts of one running worker."""

    settings: Settings
    catalog: Catalog
    database: Database
    keys: KeyStore
    authenticator: Authenticator
    requests: RequestLog
    metrics: Metrics
    backends: Backends
    deadlines: Deadlines = field(default_factory=Deadlines)
    draining: bool = False
    """Set on SIGTERM: readiness fails and new requests are refused with 503 `draining`."""
