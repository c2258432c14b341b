"""The list of models: one answer that OpenAI, Anthropic and OpenRouter clients all understand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Any

import orjson

from gateway.catalog import Catalog, Model
from gateway.data_plane.plane import PREFIXES
from gateway.errors import ModelNotFoundError
from gateway.http.access import Caller, Callers
from gateway.http.plain import Answer, Asked, Page
from gateway.model_entries import Entry, codex_entry, describe, describe_name, operator_part, with_health
from gateway.services import Services


def models_pages(services: Services, callers: Callers) -> list[Page]:
    """``GET /v1/models`` and ``/v1/models/{id}``, where an id may hold slashes, under every prefix."""
    listing = _Listing(lambda: services.backends.unusable(services.clock()))

    async def list_models(asked: Asked) -> Answer:
        """The models this key may use.

        `supported_parameters=a,b` keeps those that take all of them, `output_modalities=a,b` those that give all.
        """
        caller = await callers.of(asked.headers)
        parameters, outputs = _words(asked, "supported_parameters"), _words(asked, "output_modalities") - {"all"}
        found = [
            entry
            for entry in listing.entries(services.catalog, caller)
            if parameters.issubset(entry["supported_parameters"])
            and outputs.issubset(entry["architecture"]["output_modalities"])
        ]
        page: dict[str, Any] = {
            "object": "list",
            "data": found,
            "has_more": False,
            "first_id": found[0]["id"] if found else None,
            "last_id": found[-1]["id"] if found else None,
        }
        if "client_version" in asked.query:
            page["models"] = [codex_entry(entry, place) for place, entry in enumerate(found)]
        return _answer(asked, page)

    async def get_model(asked: Asked) -> Answer:
        """One model by its id or by another name of it."""
        model_id = asked.rest
        if not model_id:
            return await list_models(asked)
        caller = await callers.of(asked.headers)
        model = services.catalog.resolve(model_id)
        # A model that exists but not for this key looks as if it did not exist.
        if model is None or not caller.may_use(model.id):
            usable = [entry["id"] for entry in listing.entries(services.catalog, caller)]
            raise ModelNotFoundError(_unknown(model_id, usable))
        return _answer(asked, {**listing.entry(services.catalog, model, caller), "id": model_id})

    found = []
    for prefix in PREFIXES:
        shown = prefix == "/v1"
        found.append(Page(f"{prefix}/models", list_models, "models", shown))
        found.append(Page(f"{prefix}/models/{{model_id:path}}", get_model, "models", shown))
    return found


class _Listing:
    """The entries of a catalogue, each made once: but for the targets' health, which only the operator is told, they
    don't change until a new configuration is loaded."""

    def __init__(self, unusable: Callable[[], Collection[str]]) -> None:
        """*unusable* gives the names of the targets that would not be asked now."""
        self._unusable = unusable
        self._catalog: Catalog | None = None
        self._made: dict[str, tuple[Entry, Entry]] = {}
        """By a model's id, or its pattern's: what all are told, and the operator besides."""

    def entries(self, catalog: Catalog, caller: Caller) -> list[Entry]:
        """What *caller* may use, in the order of the configuration: models, then other names of theirs."""
        usable = [model for model in catalog.models.values() if caller.may_use(model.id)]
        found = [self.entry(catalog, model, caller) for model in (*usable, *_named(catalog, caller))]
        ids = {entry["id"] for entry in found}
        for alias, model in catalog.named.items():
            # Clients take no other name for one that works than those in the list.
            if alias not in ids and caller.may_use(model.id):
                found.append({**self.entry(catalog, model, caller), "id": alias, "display_name": alias, "name": alias})
        return found

    def entry(self, catalog: Catalog, model: Model, caller: Caller) -> Entry:
        """What *caller* is told of *model*."""
        if catalog is not self._catalog:
            self._catalog, self._made = catalog, {}
        name = model.pattern or model.id
        if name not in self._made:
            self._made[name] = (describe(model), operator_part(model))
        told, besides = self._made[name]
        if model.pattern:
            told = {**told, **describe_name(model)}
        return {**told, **with_health(besides, model, self._unusable())} if caller.is_admin else told


def _named(catalog: Catalog, caller: Caller) -> list[Model]:
    """The fine-tunes that a key's own list names: it may not use their pattern, which is all the others see."""
    names = caller.key.models if caller.key is not None and caller.key.models is not None else ()
    models = [catalog.resolve(name) for name in names if "*" not in name and "?" not in name]
    return [model for model in models if model is not None and model.pattern and not caller.may_use(model.pattern)]


def _words(asked: Asked, name: str) -> set[str]:
    return {word for word in asked.query.get(name, "").split(",") if word}


def _unknown(model_id: str, usable: list[str]) -> str:
    shown = model_id if len(model_id) <= 100 else model_id[:100] + "…"
    near = get_close_matches(model_id[:100], usable, n=3, cutoff=0.4) or usable[:3]
    hint = f" Near it: {', '.join(near)}." if near else " No model is configured for this key."
    return f"The model '{shown}' does not exist.{hint}"


def _answer(asked: Asked, content: dict[str, Any]) -> Answer:
    body = orjson.dumps(content)
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {
        "etag": etag,
        "cache-control": "private, max-age=30",
        # The answer depends on the key, wherever it stands.
        "vary": "authorization, x-api-key, api-key",
    }
    if etag in (candidate.strip() for candidate in asked.header(b"if-none-match").split(",")):
        return Answer(b"", 304, headers)
    return Answer(body, 200, {"content-type": "application/json", **headers})
