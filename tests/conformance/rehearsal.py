"""A whole gateway and the simulators of many providers in one process, without a socket between them.

Requests go the whole way: through the data plane, the pipeline, the adapters with their shapes, and the repair of what
comes back. Only what moves bytes over a wire is left out, so that thousands of requests take seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapters.adapter import Adapter
from adapters.learned import LearnedFeatures, LearnedRefusals
from adapters.registry import load_spec
from adapters.simulator.engine import Simulator
from adapters.simulator.options import Options
from adapters.simulator.refusal import RefusedError
from adapters.simulator.wire import Answer as Played
from adapters.simulator.wire import Request
from adapters.spec import Kind, ProviderSpec
from adapters.target import Target
from gateway.app import Application
from gateway.data_plane.asgi_exchange import AsgiDataPlane
from gateway.data_plane.limits import WireLimits
from gateway.pipeline.backend import Backend
from gateway.settings import load_settings
from gateway.upstream.base import BodySink, RequestHead, Sending
from tests.fakes.raw_client import Answer

Event = MutableMapping[str, Any]
Script = Callable[[Mapping[str, Any], Callable[[], Played]], Played]
"""What a provider answers to a body; what is handed in has its simulator answer."""


@dataclass(slots=True)
class Seen:
    """What one provider has been sent since it was last looked at."""

    bodies: list[Any] = field(default_factory=list)
    refusals: list[RefusedError] = field(default_factory=list)

    def note(self, path: str, body: Any) -> None:
        self.bodies.append(body)


class _Response:
    """Implements `UpstreamResponse`: an answer that is there at once."""

    __slots__ = ("_body", "_sink", "headers", "status")

    def __init__(self, played: Played) -> None:
        self.status: int = played.status
        self.headers: Mapping[str, str] = played.headers
        self._body = [step for step in played.steps if isinstance(step, bytes)]

    async def read(self, limit_bytes: int) -> bytes:
        return b"".join(self._body)

    def stream(self, sink: BodySink) -> None:
        for piece in self._body:
            sink.feed(piece)
        sink.finish(None)

    def pause(self) -> None:
        """Nothing is in flight."""

    def resume(self) -> None:
        """Nothing is in flight."""

    def close(self) -> None:
        """Nothing is open."""


class Simulators:
    """Implements `Upstream`: hands each request to the simulator of its provider."""

    def __init__(self, simulators: Mapping[str, Simulator], seen: Mapping[str, Seen]) -> None:
        self._simulators = simulators
        self._seen = seen
        self.script: Script | None = None

    async def send(
        self, head: RequestHead, body: bytes, extra_headers: bytes = b"", sending: Sending | None = None
    ) -> _Response:
        if sending is not None:
            sending.sent = True
        await asyncio.sleep(0)
        simulator = self._simulators[head.origin.name]
        request = Request(head.method, head.path, dict(head.headers), body)
        if self.script is None:
            return _Response(simulator.handle(request))
        decoded = json.loads(body)
        bodies = self._seen[head.origin.name].bodies
        before = len(bodies)
        played = self.script(decoded, lambda: simulator.handle(request))
        if len(bodies) == before:
            bodies.append(decoded)
        return _Response(played)

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Rehearsal:
    """The gateway in front of all the simulators; clients call a model by its provider's name."""

    app: Application
    plane: AsgiDataPlane
    simulators: Mapping[str, Simulator]
    seen: Mapping[str, Seen]
    upstream: Simulators
    """Has a script where another answer is wanted than the simulators'."""

    def backend(self, model: str) -> Backend:
        """The only target of a model."""
        backends = self.app.services.backends
        return backends.route(self.app.services.catalog.models[model]).backends[0]

    def look(self, provider: str) -> Seen:
        """What *provider* has been sent since the last look."""
        seen = self.seen[provider]
        found = Seen(list(seen.bodies), list(seen.refusals))
        seen.bodies.clear()
        seen.refusals.clear()
        return found

    async def post(self, path: str, body: Mapping[str, Any], *headers: str) -> Answer:
        """One request and its answer."""
        raw = json.dumps(body).encode()
        told = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in headers)]
        lines = [("content-type", "application/json"), ("content-length", str(len(raw))), *told]
        scope: Event = {
            "type": "http", "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode(),
            "query_string": b"", "scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
            "headers": [(name.encode(), value.encode()) for name, value in lines],
        }  # fmt: skip
        events: list[Event] = [{"type": "http.request", "body": raw, "more_body": False}]
        answer = Answer(0, {}, b"")
        over = asyncio.Event()

        async def receive() -> Event:
            if events:
                return events.pop()
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(event: Event) -> None:
            if event["type"] == "http.response.start":
                answer.status = event["status"]
                answer.headers = {name.decode(): value.decode() for name, value in event["headers"]}
            else:
                answer.body += event.get("body", b"")

        await self.plane(scope, receive, send)
        over.set()
        return answer


@contextlib.asynccontextmanager
async def rehearsal(models: Mapping[str, tuple[str, str | None]]) -> AsyncIterator[Rehearsal]:
    """Rehearse *models*: what clients call each, with the type of its provider and the model's id there, or any."""
    simulators: dict[str, Simulator] = {}
    seen: dict[str, Seen] = {}
    for kind, _ in models.values():
        if kind not in simulators:
            seen[kind] = found = Seen()
            spec = load_spec(kind)
            known = {model.id for model in spec.models}
            others = {model for other, model in models.values() if other == kind and model is not None} - known
            options = Options(models=tuple(sorted(others)))
            simulators[kind] = Simulator(spec, options, on_request=found.note, on_refusal=found.refusals.append)
    settings = {
        "version": 1,
        "auth": {"mode": "open"},
        "providers": {kind: _settings(simulator) for kind, simulator in simulators.items()},
        "models": {
            name: {
                "targets": [{"provider": kind, "model": model or simulators[kind].models.names()[0]}],
                "retries": {"attempts": 1},
            }
            for name, (kind, model) in models.items()
        },
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "config.yaml")
        path.write_text(json.dumps(settings), encoding="utf-8")
        flags = {"storage.database_url": f"sqlite+aiosqlite:///{folder}/gateway.db"}
        app = await Application.create(load_settings(path, environ={}, flags=flags), environ={}, migrate=True)
        try:
            upstream = Simulators(simulators, seen)
            for backend in _backends(app):
                backend.upstream = upstream
                by_facts_alone(backend.adapter)
                spec = simulators[backend.target.provider].spec
                if _runs_here(spec):
                    backend.target = replace(backend.target, spec=spec)
                    backend.adapter = fresh_adapter(backend.target)
            plane = AsgiDataPlane(app.plane, _nothing_else, WireLimits())
            yield Rehearsal(app, plane, simulators, seen, upstream)
        finally:
            await app.aclose()


def _settings(simulator: Simulator) -> dict[str, Any]:
    spec = simulator.spec
    kind = spec.id if not _runs_here(spec) else spec.inherits
    return {"type": kind, "base_url": f"http://simulated{simulator.base_path}", "api_key": simulator.key or "any"}


def offers(target: Target) -> Callable[[str], bool] | None:
    """Tells what the model of a local engine has beyond talking; None where the file tells it."""
    if target.spec.kind is not Kind.IN_PROCESS:
        return None
    lacks = {name for model in target.spec.models if model.id == target.model for name in model.lacks}
    return lambda feature: feature not in lacks


def has_tools(target: Target) -> bool | None:
    """Whether the model of a local engine has tools; None where the file tells it."""
    told = offers(target)
    return told("tools") if told is not None else None


def fresh_adapter(target: Target) -> Adapter:
    """An adapter that has learned nothing yet."""
    return by_facts_alone(Adapter(target, offers=offers(target)))


def by_facts_alone(adapter: Adapter) -> Adapter:
    """*adapter*, which learns of no parameter by its refusal: whatever a file could say, it has to say."""
    learning = LearnedRefusals | LearnedFeatures
    adapter.rules.rescues = tuple(rescue for rescue in adapter.rules.rescues if not isinstance(rescue, learning))
    return adapter


def _runs_here(spec: ProviderSpec) -> bool:
    """Whether the gateway would start a process of its own for it; the simulator stands for that."""
    return spec.kind is Kind.IN_PROCESS or spec.id == "litellm_bridge"


def _backends(app: Application) -> Iterable[Backend]:
    services = app.services
    for model in services.catalog.models.values():
        yield from services.backends.route(model).backends


async def _nothing_else(scope: Event, receive: Any, send: Any) -> None:
    raise AssertionError(f"{scope['path']} is not of the data plane")
