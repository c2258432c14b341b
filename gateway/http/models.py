"""The list of models: one answer that OpenAI, Anthropic and OpenRouter clients all understand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final

import orjson
from fastapi import APIRouter, Request, Response

from adapters.spec import Support
from adapters.target import Target
from gateway.catalog import Catalog, Model
from gateway.data_plane.plane import PREFIXES
from gateway.errors import ModelNotFoundError
from gateway.http.access import Caller, Callers
from gateway.services import Services

# Unknown and merely ignored parameters are no promise a client could build on.
_USABLE: Final = frozenset({Support.NATIVE, Support.LIMITED, Support.RENAMED, Support.CONDITIONAL})
_PICO: Final = Decimal(10) ** -12


def models_router(services: Services, callers: Callers) -> APIRouter:
    """``GET /v1/models`` and ``/v1/models/{id}``, where an id may hold slashes, under every prefix."""
    router = APIRouter(tags=["models"])
    listing = _Listing()

    async def list_models(request: Request) -> Response:
        """The models this key may use; `supported_parameters=a,b` keeps those that take all of them."""
        caller = await callers.of(request)
        wanted = {name for name in request.query_params.get("supported_parameters", "").split(",") if name}
        found = [
            entry
            for entry in listing.entries(services.catalog, caller)
            if wanted.issubset(entry["supported_parameters"])
        ]
        return _answer(
            request,
            {
                "object": "list",
                "data": found,
                "has_more": False,
                "first_id": found[0]["id"] if found else None,
                "last_id": found[-1]["id"] if found else None,
            },
        )

    async def get_model(request: Request, model_id: str) -> Response:
        """One model by its id or by another name of it."""
        if not model_id:
            return await list_models(request)
        caller = await callers.of(request)
        model = services.catalog.resolve(model_id)
        # A model that exists but not for this key looks as if it did not exist.
        if model is None or not caller.may_use(model.id):
            usable = [entry["id"] for entry in listing.entries(services.catalog, caller)]
            raise ModelNotFoundError(_unknown(model_id, usable))
        return _answer(request, {**describe(model), "id": model_id, **(_internals(model) if caller.is_admin else {})})

    for prefix in PREFIXES:
        shown = prefix == "/v1"
        router.get(f"{prefix}/models", include_in_schema=shown)(list_models)
        router.head(f"{prefix}/models", include_in_schema=False)(list_models)
        router.get(f"{prefix}/models/{{model_id:path}}", include_in_schema=shown)(get_model)
        router.head(f"{prefix}/models/{{model_id:path}}", include_in_schema=False)(get_model)
    return router


class _Listing:
    """The entries of a catalogue, made once: they don't change until a new configuration is loaded."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._entries: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def entries(self, catalog: Catalog, caller: Caller) -> list[dict[str, Any]]:
        if catalog is not self._catalog:
            self._entries = [(describe(model), _internals(model)) for model in catalog.models.values()]
            self._catalog = catalog
        found = [
            {**entry, **internals} if caller.is_admin else entry
            for entry, internals in self._entries
            if caller.may_use(entry["id"])
        ]
        return found + [describe(model) for model in _named(catalog, caller)]


def _named(catalog: Catalog, caller: Caller) -> list[Model]:
    """The fine-tunes that a key's own list names: it may not use their pattern, which is all the others see."""
    names = caller.key.models if caller.key is not None and caller.key.models is not None else ()
    models = [catalog.resolve(name) for name in names if "*" not in name and "?" not in name]
    return [model for model in models if model is not None and model.pattern and not caller.may_use(model.pattern)]


def describe(model: Model) -> dict[str, Any]:
    """What clients are told about a model: what holds whichever of its targets answers, and the first one's price."""
    first = model.targets[0]
    created = datetime.combine(first.spec.as_of, time(), UTC)
    entry: dict[str, Any] = {
        "id": model.id,
        "object": "model",
        "created": int(created.timestamp()),
        "owned_by": first.provider,
        "type": "model",
        "display_name": model.id,
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "name": model.id,
        "description": _description(model),
        "context_length": _least(target.context_window for target in model.targets),
        "max_output_tokens": _least(target.max_output_tokens for target in model.targets),
        "supported_parameters": sorted(set.intersection(*(supported(target) for target in model.targets))),
    }
    if first.price is not None:
        entry["pricing"] = {
            "prompt": _usd(first.price.input_ptoken),
            "completion": _usd(first.price.output_ptoken),
        }
        if first.price.cached_input_ptoken is not None:
            entry["pricing"]["input_cache_read"] = _usd(first.price.cached_input_ptoken)
    return entry


def _description(model: Model) -> str:
    answered = "Answered by " + ", then ".join(target.name for target in model.targets) + "."
    if not model.many:
        return answered
    return f"Fine-tunes of {model.targets[0].model}: put the name of one for '*'. {answered}"


def supported(target: Target) -> set[str]:
    """The parameters a target honours, named as OpenRouter names them."""
    usable = {name for name, param in target.spec.params.items() if param.support in _USABLE}
    names = {name.partition(".")[0] for name in usable}
    if "response_format.json_schema" in usable:
        names.add("structured_outputs")
    return names


def _internals(model: Model) -> dict[str, Any]:
    """What only the operator is told."""
    targets = [
        {"provider": target.provider, "model": target.model, "supported_parameters": sorted(supported(target))}
        for target in model.targets
    ]
    return {"gateway": {"targets": targets, "strategy": model.strategy}}


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _usd(pico: int) -> str:
    price = (pico * _PICO).normalize()
    return f"{price:f}"


def _unknown(model_id: str, usable: list[str]) -> str:
    shown = model_id if len(model_id) <= 100 else model_id[:100] + "…"
    near = get_close_matches(model_id[:100], usable, n=3, cutoff=0.4) or usable[:3]
    hint = f" Near it: {', '.join(near)}." if near else " No model is configured for this key."
    return f"The model '{shown}' does not exist.{hint}"


def _answer(request: Request, content: dict[str, Any]) -> Response:
    body = orjson.dumps(content)
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {
        "etag": etag,
        "cache-control": "private, max-age=30",
        # The answer depends on the key, wherever it stands.
        "vary": "authorization, x-api-key, api-key",
    }
    if etag in (candidate.strip() for candidate in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")
