"""Liveness, and a readiness that is true: what is checked, and why it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import orjson

from gateway.bridge.state import BridgeState, state_at
from gateway.http.plain import Answer, Asked, Page, json_answer
from gateway.services import Services
from gateway.storage.database import Database
from gateway.storage.errors import StorageError
from gateway.storage.schema import schema_state

_TIMEOUT_SECONDS: Final = 2.0
_KEPT_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. The gateway is ready when everything *required* is fine."""

    name: str
    reason: str = ""
    """Why it is not fine, in words for an operator that give nothing away; empty when it is."""
    required: bool = True
    state: str = ""
    """A word for how it is, where fine says too little: a bridge that nobody has asked yet is idle."""

    @property
    def ok(self) -> bool:
        return not self.reason


def health_pages(services: Services) -> list[Page]:
    """``/health/live`` and ``/health/ready``."""
    readiness = Readiness(services)

    async def live(_asked: Asked) -> Answer:
        """200 as long as the event loop turns."""
        return _answer(200, {"status": "alive"})

    async def ready(_asked: Asked) -> Answer:
        """200 when a request would be served, else 503; the body tells each check and its reason."""
        checks = await readiness.checks()
        is_ready = all(check.ok for check in checks if check.required)
        status = ("ready" if all(check.ok for check in checks) else "degraded") if is_ready else "not ready"
        details = {check.name: _details(check) for check in checks}
        return _answer(200 if is_ready else 503, {"status": status, "checks": details})

    return [Page("/health/live", live, "health"), Page("/health/ready", ready, "health")]


class Readiness:
    """Looks at everything a request needs; probes that come close together share one look at the database."""

    def __init__(self, services: Services, clock: Callable[[], float] | None = None) -> None:
        self._services = services
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._storage: list[Check] = []
        self._storage_at = float("-inf")
        self._lock = asyncio.Lock()

    async def checks(self) -> list[Check]:
        """Every check, in a fixed order."""
        draining = "shutting down" if self._services.draining else ""
        models = "" if self._services.catalog.models else "no model is configured"
        return [
            Check("accepting", draining),
            Check("config", models),
            *await self._storage_checks(),
            *self._backend_checks(),
        ]

    async def _storage_checks(self) -> list[Check]:
        async with self._lock:
            if self._clock() - self._storage_at >= _KEPT_SECONDS:
                database = self._services.database
                reachable = await _attempt("database", database.ping)
                schema = Check("schema", "the database cannot be asked")
                if reachable.ok:
                    schema = await _attempt("schema", lambda: _look_at_schema(database))
                self._storage = [reachable, schema]
                self._storage_at = self._clock()
            return self._storage

    def _backend_checks(self) -> list[Check]:
        """The local engines and the bridges: what this gateway runs itself to answer requests."""
        engines = dict(self._services.backends.engine_problems())
        bridges = {name: state_at(socket) for name, socket in self._services.current.bridges.items()}
        down = {**engines, **{name: _bridge_problem(state) for name, state in bridges.items()}}
        # A model with another target is still answered, so its engine is missed but not required.
        lost = [
            model
            for model in self._services.catalog.models.values()
            if all(down.get(target.provider) for target in model.targets)
        ]
        required = len(lost) == len(self._services.catalog.models)
        return [
            *(Check(f"engine {name}", reason, required) for name, reason in sorted(engines.items())),
            *(Check(f"bridge {name}", down[name], required, state) for name, state in sorted(bridges.items())),
        ]


def _bridge_problem(state: BridgeState) -> str:
    # Why it failed is in the library's words, which may hold anything: the log masks them.
    return "" if state.answers else f"it is {state.value}; the log says why"


def _details(check: Check) -> dict[str, object]:
    state = {"state": check.state} if check.state else {}
    reason = {"reason": check.reason} if check.reason else {}
    return {"ok": check.ok, **state, **reason}


async def _attempt(name: str, look: Callable[[], Awaitable[str | None]]) -> Check:
    """The check that *look* makes: it returns a reason, or None or nothing when all is well."""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return Check(name, await look() or "")
    except TimeoutError:
        return Check(name, f"no answer within {_TIMEOUT_SECONDS:g} s")
    except StorageError as error:
        _log.warning("the gateway is not ready: %s", error)
        return Check(name, "not available; the log says why")


async def _look_at_schema(database: Database) -> str:
    state = await schema_state(database)
    if state.is_current:
        return ""
    return f"version {state.current or 'none'}, this program needs {state.head}; run `gateway db upgrade`"


def _answer(status: int, content: dict[str, object]) -> Answer:
    return json_answer(orjson.dumps(content), status, cache_control="no-store")
