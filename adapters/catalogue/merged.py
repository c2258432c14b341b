"""The catalogue: what a provider's own file says of a model, then what the snapshot says."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from adapters.catalogue.record import ModelRecord, from_file, laid_over
from adapters.catalogue.snapshot import shipped_snapshot
from adapters.spec import ModelSpec, ProviderSpec


def listed_in(spec: ProviderSpec, model: str) -> ModelSpec | None:
    """What the provider's file says of *model*, by the id the provider has for it."""
    return next((entry for entry in spec.models if entry.id == model), None)


def find_record(spec: ProviderSpec, model: str) -> ModelRecord | None:
    """What is known of *model* at a provider; the snapshot is read only where the file leaves its price open."""
    listed = listed_in(spec, model)
    own = from_file(listed, _source(spec)) if listed is not None else None
    if (own is not None and own.prices) or not spec.price_lists:
        return own
    other = shipped_snapshot().find(spec.id, model)
    if own is None or other is None:
        return own or other
    return laid_over(own, other)


def all_records(spec: ProviderSpec) -> Iterator[ModelRecord]:
    """Every model that is known at a provider: those of its file in their order, then those of the snapshot."""
    others = dict(shipped_snapshot().models.get(spec.id, {})) if spec.price_lists else {}
    for listed in spec.models:
        own = from_file(listed, _source(spec))
        other = others.pop(listed.id, None)
        yield laid_over(own, other) if other is not None else own
    yield from others.values()


def successor_of(spec: ProviderSpec, record: ModelRecord) -> str | None:
    """The id of a model to take in place of *record*: the one that is named, else the one whose name is nearest."""
    if record.successor is None and spec.price_lists:
        other = shipped_snapshot().find(spec.id, record.id)
        record = laid_over(record, other) if other is not None else record
    # Of the file alone: what it lists is known to be served, and a person can look it up there.
    served = {entry.canonical: entry.id for entry in spec.models if entry.offered}
    if record.successor is not None:
        return record.successor
    near = get_close_matches(record.canonical, served, n=1, cutoff=0.4)
    return served[near[0]] if near else next(iter(served.values()), None)


def _source(spec: ProviderSpec) -> str:
    return f"{spec.id}.yaml ({spec.as_of})"
