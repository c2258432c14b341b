"""How to reach each target: where to connect, with which key, through which client. Built once a configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from adapters.adapter import Adapter
from adapters.registry import load_spec
from adapters.shapes.prompt_as_chat import chat_stands_in
from adapters.spec import ProviderSpec
from adapters.target import Target
from adapters.types import Operation
from gateway.catalog import Catalog, Model
from gateway.config.certificates import Stamps, stamps_of
from gateway.config.provider_settings import ProviderSettings
from gateway.config.schema import Settings
from gateway.local_models import operations_of
from gateway.pipeline.backend import Backend, Concurrency
from gateway.pipeline.plan import Route
from gateway.pipeline.provider_keys import ProviderKeys
from gateway.pipeline.reply import static_headers
from gateway.pipeline.rests import Rests, TargetRests
from gateway.pipeline.upstream_limits import UpstreamLimits
from gateway.upstream.base import Origin, RequestHead, Upstream
from gateway.upstream.connect import make_ssl_context
from gateway.upstream.local import LocalUpstream, local_origin
from local_engine.state import WELL, Engine, explain

DEFAULT_QUEUE: Final = 64
"""Requests that may wait for a local engine's slot; more are refused with 503."""


class _Provider:
    """What the targets of one provider share, and keep when another configuration has the provider too."""

    __slots__ = (
        "_earlier_rests",
        "certificates",
        "concurrency",
        "keys",
        "origin",
        "path",
        "rests",
        "settings",
        "upstream",
    )

    def __init__(
        self,
        settings: ProviderSettings,
        origin: Origin,
        path: str,
        upstream: Upstream,
        before: _Provider | None = None,
        certificates: Stamps = (),
    ) -> None:
        self.settings = settings
        self.origin = origin
        self.path = path
        self.upstream = upstream
        self.certificates = certificates
        self.concurrency = Concurrency(settings.max_concurrency) if settings.max_concurrency else None
        self.keys = ProviderKeys(len(settings.keys)) if len(settings.keys) > 1 else None
        if before is not None and self.concurrency is not None and before.concurrency is not None:
            # Requests of the old configuration still count; the new limit holds from `take_effect` on.
            self.concurrency = before.concurrency
        if before is not None and self.keys is not None and before.settings.keys == settings.keys:
            self.keys = before.keys
        self.rests: dict[str, TargetRests] = {}
        """Of each of its models that is a target."""
        self._earlier_rests: dict[str, TargetRests] = {}
        if before is not None and _asks_the_same(settings, before.settings):
            self._earlier_rests = before.rests

    def rests_of(self, model: str, everyone: Rests) -> TargetRests:
        """The rests of one of its models; *everyone* is told of them."""
        rests = self.rests.get(model) or self._earlier_rests.get(model)
        if rests is None:
            rests = TargetRests(everyone, max(1, len(self.settings.keys)))
        self.rests[model] = rests
        return rests

    def take_effect(self) -> None:
        """Let the limits that are shared with an earlier configuration be those of this one."""
        if self.concurrency is not None and self.settings.max_concurrency:
            self.concurrency.limit = self.settings.max_concurrency
        if isinstance(self.upstream, LocalUpstream):
            self.upstream.queue_limit = _queue_limit(self.settings)


class Backends:
    """The routes of a configuration, by model."""

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        upstream: Upstream,
        engines: Mapping[str, Engine],
        before: Backends | None = None,
    ) -> None:
        """*engines* holds each local engine by its provider's name; they must have been started.

        What *before*, the backends of the configuration in force, has in common with these is taken over, so that
        connections, counts and what is known of providers outlive a reload; nothing of it is changed.
        """
        self._settings = settings
        self._engines = engines
        self._rests: Rests = before._rests if before is not None else Rests()
        self.queues: dict[str, LocalUpstream] = {}
        """The clients that wait for a local engine's slots, by provider."""
        self._providers: dict[str, _Provider] = {}
        for name, provider in settings.providers.items():
            known = before._providers.get(name) if before is not None else None
            if name in engines:
                engine = engines[name]
                local = before.queues.get(name) if before is not None else None
                if local is None or local.engine is not engine:
                    local = LocalUpstream(engine, upstream, _queue_limit(provider))
                self.queues[name] = local
                self._providers[name] = _Provider(provider, local_origin(engine), "/v1", local, known)
            else:
                self._providers[name] = _remote(name, provider, upstream, known)
        self._routes = {model.id: self._build(model) for model in (*catalog.models.values(), *catalog.exposed.values())}
        if before is not None:
            self._remember_limits(before)

    def route(self, model: Model) -> Route:
        """How to answer for *model*."""
        route = self._routes[model.pattern or model.id]
        if model.pattern and route.alias is not None:
            route = replace(route, alias=json.dumps(model.id).encode())
        return route

    def take_effect(self) -> None:
        """These are the backends of the configuration in force from now on."""
        for provider in self._providers.values():
            provider.take_effect()

    def limits(self) -> Iterator[tuple[str, UpstreamLimits]]:
        """What the targets' providers told of their limits, each with the provider's name."""
        for route in self._routes.values():
            for backend in route.backends:
                if backend.limits is not None:
                    yield backend.target.provider, backend.limits

    def engine_problems(self) -> list[tuple[str, str]]:
        """Each local engine's provider, with the reason why it cannot answer now, or an empty text."""
        return [(name, "" if engine.state in WELL else explain(engine)) for name, engine in self._engines.items()]

    def unusable(self, now: float) -> set[str]:
        """The names of the targets that would not be asked now: they rest, or their engine is down."""
        down = {name for name, problem in self.engine_problems() if problem}
        backends = [backend for route in self._routes.values() for backend in route.backends]
        return {
            backend.target.name for backend in backends if backend.target.provider in down or backend.rests_for(now)
        }

    def _remember_limits(self, before: Backends) -> None:
        for name, route in self._routes.items():
            earlier = before._routes.get(name)
            known = {backend.target.name: backend for backend in earlier.backends} if earlier is not None else {}
            for backend in route.backends:
                same = known.get(backend.target.name)
                if same is not None and backend.limits is not None and same.target.spec == backend.target.spec:
                    backend.limits = same.limits

    def _build(self, model: Model) -> Route:
        alias = json.dumps(model.id).encode() if self._settings.response_model == "alias" else None
        return Route.build(model, tuple(self._backend(model, target) for target in model.targets), alias=alias)

    def _backend(self, model: Model, target: Target) -> Backend:
        provider = self._providers[target.provider]
        settings, spec = provider.settings, target.spec
        heads = {
            operation: tuple(
                RequestHead("POST", provider.path + endpoint.path, provider.origin, _headers(settings, spec, key))
                for key in settings.keys or ("",)
            )
            for operation in Operation
            if (endpoint := spec.endpoints.get(operation)) is not None and endpoint.available and endpoint.path
            # A local model does what it was started for, and nothing else.
            if not settings.local or operation in operations_of(settings)
        }
        if Operation.COMPLETIONS not in heads and chat_stands_in(spec):
            heads[Operation.COMPLETIONS] = heads[Operation.CHAT]
        secrets = settings.keys + tuple(value.get_secret_value() for value in settings.headers.values())
        return Backend(
            target,
            Adapter(target, secrets, _offers(self._engines.get(target.provider))),
            provider.upstream,
            heads,
            static_headers(None if model.many else model.id, target.provider, target.name),
            provider.concurrency,
            provider.rests_of(target.model, self._rests),
            provider.keys,
        )


def _offers(engine: Engine | None) -> Callable[[str], bool | None] | None:
    """What a local engine's model can do, of what its provider file calls conditional; by now that is tools alone."""
    if engine is None:
        return None

    def offers(param: str) -> bool | None:
        offered = engine.supports_tools
        if offered is None:
            engine.wake()  # only a loaded model tells, so that the next to ask will know
        return offered

    return offers


def _headers(settings: ProviderSettings, spec: ProviderSpec, key: str) -> tuple[tuple[str, str], ...]:
    headers = {"content-type": "application/json", "user-agent": "switchgear"}
    if key:
        auth = spec.transport.auth
        headers[auth.header.lower()] = auth.header_value(key)
    # What stands in the file replaces what would stand there otherwise: none of these may come twice.
    headers |= {name.lower(): value.get_secret_value() for name, value in settings.headers.items()}
    return tuple(headers.items())


def _asks_the_same(settings: ProviderSettings, before: ProviderSettings) -> bool:
    """Whether what the provider has said of its limits still holds: for the same keys, at the same place."""
    return (settings.type, settings.base_url, settings.unix_socket, settings.keys) == (
        before.type,
        before.base_url,
        before.unix_socket,
        before.keys,
    )


def _queue_limit(settings: ProviderSettings) -> int:
    return settings.queue if settings.queue is not None else DEFAULT_QUEUE


def _remote(name: str, settings: ProviderSettings, upstream: Upstream, before: _Provider | None) -> _Provider:
    """A provider behind an address or a unix socket of the operator's choosing."""
    spec = load_spec(settings.type).with_overrides(settings.overrides)
    url = urlsplit(settings.address(spec))
    context = None
    certificates = stamps_of(settings)
    if url.scheme == "https" and settings.unix_socket is None:
        # Connections are shared by those who have the same context, so one that would be alike is not made anew.
        known = before.origin.ssl_context if before is not None and before.certificates == certificates else None
        context = known or make_ssl_context(settings.ca_file, settings.client_cert, settings.client_key)
    origin = Origin(
        url.hostname or "localhost",
        url.port or (443 if context is not None else 80),
        context,
        str(settings.unix_socket) if settings.unix_socket is not None else None,
        settings.connect_timeout,
        name,
        spec.transport.keep_alive,
    )
    return _Provider(settings, origin, url.path, upstream, before, certificates)
