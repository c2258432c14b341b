"""Asks every target for one token, to see whether address, key and model name are right."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx2

from adapters.spec import ProviderSpec, Support
from adapters.target import Target
from adapters.types import Operation
from gateway.catalog import Catalog
from gateway.config.provider_settings import ProviderSettings
from gateway.settings import Settings

_TIMEOUT_SECONDS = 30.0
_SHOWN = 200


class Outcome(StrEnum):
    OK = "OK"
    FAIL = "FAIL"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of asking one target."""

    target: str
    outcome: Outcome
    detail: str


async def ask_all(settings: Settings, catalog: Catalog) -> list[Probe]:
    """One `Probe` for each target of the configured models, asked side by side; never raises for a target."""
    targets = {target.name: target for model in catalog.models.values() for target in model.targets}
    probes = (_ask(target, settings.providers[target.provider]) for target in targets.values())
    return list(await asyncio.gather(*probes))


async def _ask(target: Target, provider: ProviderSettings) -> Probe:
    if provider.local:
        return Probe(target.name, Outcome.SKIP, "starts with `gateway serve`; `gateway local doctor` checks it")
    if provider.bridge:
        return Probe(target.name, Outcome.SKIP, "is asked through the litellm library, which `gateway serve` starts")
    request = _request(target)
    if request is None:
        return Probe(target.name, Outcome.SKIP, "serves nothing that could be asked for a token")
    path, body = request
    started = time.monotonic()
    try:
        async with _client(provider, target.spec) as client:
            response = await client.post(provider.address(target.spec) + path, json=body)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        reason = str(error) or type(error).__name__
        return Probe(target.name, Outcome.FAIL, _masked(f"cannot be reached: {reason}", provider))
    if response.status_code != 200:
        detail = _masked(f"HTTP {response.status_code}: {_message(response)}", provider)
        return Probe(target.name, Outcome.FAIL, detail)
    fault = _fault(response)
    if fault is not None:
        return Probe(target.name, Outcome.FAIL, _masked(fault, provider))
    return Probe(target.name, Outcome.OK, f"{(time.monotonic() - started) * 1000:.0f} ms")


def _client(provider: ProviderSettings, spec: ProviderSpec) -> httpx2.AsyncClient:
    headers = {name: value.get_secret_value() for name, value in provider.headers.items()}
    if provider.keys:
        headers[spec.transport.auth.header] = spec.transport.auth.header_value(provider.keys[0])
    context = ssl.create_default_context(cafile=str(provider.ca_file) if provider.ca_file else None)
    if provider.client_cert is not None:
        context.load_cert_chain(provider.client_cert, provider.client_key)
    socket = str(provider.unix_socket) if provider.unix_socket else None
    transport = httpx2.AsyncHTTPTransport(verify=context, uds=socket, trust_env=False)
    timeout = httpx2.Timeout(_TIMEOUT_SECONDS, connect=provider.connect_timeout)
    return httpx2.AsyncClient(headers=headers, transport=transport, timeout=timeout, trust_env=False)


def _request(target: Target) -> tuple[str, dict[str, Any]] | None:
    """Path and body of the smallest request the target takes; None when it takes none we know."""
    endpoints = target.spec.endpoints
    limit = {_limit_name(target.spec): 1}
    bodies: Iterable[tuple[Operation, dict[str, Any]]] = (
        (Operation.CHAT, {"messages": [{"role": "user", "content": "Hi"}], **limit}),
        (Operation.COMPLETIONS, {"prompt": "Hi", "max_tokens": 1}),
        (Operation.EMBEDDINGS, {"input": "Hi"}),
    )
    for operation, body in bodies:
        endpoint = endpoints.get(operation.value)
        if endpoint is not None and endpoint.available and endpoint.path is not None:
            return endpoint.path, {"model": target.model, **body}
    return None


def _limit_name(spec: ProviderSpec) -> str:
    entry = spec.params.get("max_tokens")
    return "max_completion_tokens" if entry is not None and entry.support is not Support.NATIVE else "max_tokens"


def _fault(response: httpx2.Response) -> str | None:
    """What is wrong with a 200, if anything."""
    try:
        answer = response.json()
    except ValueError:
        return "HTTP 200, but the answer is no JSON"
    if not isinstance(answer, dict) or not (answer.get("choices") or answer.get("data")):
        return f"HTTP 200, but no answer in it: {_message(response)}"
    return None


def _message(response: httpx2.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        return " ".join(response.text.split())[:_SHOWN] or "no body"
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message", error) if isinstance(error, dict) else error
    return " ".join(str(message).split())[:_SHOWN]


def _masked(text: str, provider: ProviderSettings) -> str:
    """*text* without the provider's secrets: some repeat a refused key in their answer."""
    secrets = (*provider.keys, *(value.get_secret_value() for value in provider.headers.values()))
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    return text
