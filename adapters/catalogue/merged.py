"""The catalogue: what a provider's own file says of a model, then what the snapshot says."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

import msgspec

from adapters.catalogue.record import ModelRecord, from_file, laid_over
from adapters.catalogue.snapshot import shipped_snapshot
from adapters.spec import ProviderSpec


def own_record(spec: ProviderSpec, model: str) -> ModelRecord | None:
    """What the provider's file says of *model*, by the id the provider has for it."""
    listed = next((entry for entry in spec.models if entry.id == model), None)
    return from_file(listed, _file(spec)) if listed is not None else None


def find_record(spec: ProviderSpec, model: str) -> ModelRecord | None:
    """What is known of *model* at a provider; the snapshot is read only where the file leaves its price open."""
    own = own_record(spec, model)
    if (own is not None and own.prices) or not spec.price_lists:
        return own
    other = _from_snapshot(spec, model)
    if own is None or other is None:
        return own or other
    return laid_over(own, other)


def all_records(spec: ProviderSpec) -> Iterator[ModelRecord]:
    """Every model that is known at a provider: those of its file in their order, then those of the snapshot."""
    for listed in spec.models:
        own, other = from_file(listed, _file(spec)), _from_snapshot(spec, listed.id)
        yield laid_over(own, other) if other is not None else own
    ids = {listed.id for listed in spec.models}
    for model in shipped_snapshot().models.get(spec.id, ()) if spec.price_lists else ():
        if model not in ids and (other := _from_snapshot(spec, model)) is not None:
            yield other


def successor_of(spec: ProviderSpec, record: ModelRecord) -> str | None:
    """The id of a model to take in place of *record*: the one that is named, else the one whose name is nearest."""
    other = _from_snapshot(spec, record.id)
    named = record.successor or (other.successor if other is not None else None)
    if named is not None:
        return named
    # Of the file alone: what it lists is known to be served, and a person can look it up there.
    served = {entry.canonical: entry.id for entry in spec.models if entry.offered}
    near = get_close_matches(record.canonical, served, n=1, cutoff=0.4)
    return served[near[0]] if near else next(iter(served.values()), None)


def _file(spec: ProviderSpec) -> str:
    return f"{spec.id}.yaml ({spec.as_of})"


def _from_snapshot(spec: ProviderSpec, model: str) -> ModelRecord | None:
    if not spec.price_lists:
        return None
    snapshot = shipped_snapshot()
    record = snapshot.find(spec.id, model)
    if record is None:
        return None
    return msgspec.structs.replace(record, sources=tuple(f"{name} ({snapshot.as_of})" for name in record.sources))
