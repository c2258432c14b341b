"""Makes a snapshot of two price lists, and says what is different from the last one and odd about the new one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

import msgspec

from adapters.catalogue.record import UNITS, ModelRecord, from_file, long_prices, usd
from adapters.catalogue.snapshot import Snapshot, Source
from adapters.registry import load_spec, provider_types
from adapters.vocabulary import PriceList

Records = Mapping[str, Mapping[str, ModelRecord]]

JUMP: Final = 5
"""A price that grows or shrinks by more than this is first looked at by a person."""

ROUNDING: Final = 1000
"""Two lists that differ by less than this part have the same price: one of them rounded it."""

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that a person may want to know of one model."""

    model: str
    """``type/id``."""
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """A new snapshot, and what there is to say about it."""

    snapshot: Snapshot
    jumps: tuple[Difference, ...]
    """Prices that jumped, went away, or are far from the second list's, and were not accepted; the snapshot is not to
    be written while there are any."""
    changes: tuple[Difference, ...]
    """Changes from the snapshot there was."""
    disagreements: tuple[Difference, ...]
    """Where the second list has another price. The first one's is taken."""
    overridden: tuple[Difference, ...]
    """Where our own files have another price. Theirs is used."""
    confirmed: int
    """Models whose price the second list has as well."""


def names_in(price_list: PriceList) -> dict[str, str]:
    """What a price list calls the providers it knows, each with our type."""
    specs = (load_spec(name) for name in provider_types())
    return {spec.price_lists[price_list]: spec.id for spec in specs if price_list in spec.price_lists}


def canonical_name(provider_type: str, model: str) -> str:
    """The canonical name of what a provider calls *model*."""
    return load_spec(provider_type).canonical(model)


def make_snapshot(
    records: Records,
    second: Records,
    *,
    sources: tuple[Source, ...],
    today: date,
    before: Snapshot | None,
    accept: Collection[str] = (),
) -> Outcome:
    """A snapshot of *records*, checked against *second* and compared with the one *before*.

    *accept* names the models, as ``type/id`` or `ALL`, whose prices may jump.
    """
    models: dict[str, dict[str, ModelRecord]] = {}
    disagreements: list[Difference] = []
    doubted: list[Difference] = []
    confirmed = 0
    for provider, found in records.items():
        other_names = second.get(provider, {})
        for model, record in found.items():
            other = other_names.get(model.lower())
            kept = record
            if other is not None and other.prices:
                told = list(_unlike(record, other))
                if told:
                    difference = Difference(f"{provider}/{model}", f"{', '.join(told)} in the second list")
                    disagreements.append(difference)
                    known = before.find(provider, model) if before is not None else None
                    if _far_apart(record, other) and (known is None or known.prices != record.prices):
                        doubted.append(difference)
                else:
                    confirmed += 1
                    kept = msgspec.structs.replace(record, sources=(*record.sources, *other.sources))
            models.setdefault(provider, {})[model] = kept
    snapshot = Snapshot(1, today, sources, models)
    changes, jumps = _compare(before, snapshot) if before is not None else ([], [])
    pending = [jump for jump in (*jumps, *doubted) if jump.model not in accept and ALL not in accept]
    return Outcome(
        snapshot, tuple(pending), tuple(changes), tuple(disagreements), tuple(_overridden(snapshot)), confirmed
    )


def _compare(before: Snapshot, after: Snapshot) -> tuple[list[Difference], list[Difference]]:
    changes: list[Difference] = []
    jumps: list[Difference] = []
    for provider in sorted({*before.models, *after.models}):
        old, new = before.models.get(provider, {}), after.models.get(provider, {})
        for model in sorted({*old, *new}):
            name = f"{provider}/{model}"
            if model not in new:
                (jumps if old[model].prices else changes).append(Difference(name, "is gone"))
            elif model not in old:
                changes.append(Difference(name, "is new"))
            else:
                for text, jumped in _changed(old[model], new[model]):
                    (jumps if jumped else changes).append(Difference(name, text))
    return changes, jumps


def _changed(old: ModelRecord, new: ModelRecord) -> Iterator[tuple[str, bool]]:
    """Each change, and whether it is of those that have to be accepted."""
    for units in UNITS:
        was, now = old.prices.get(units.field), new.prices.get(units.field)
        if was == now:
            continue
        if was is None and now is not None:
            yield f"{units.label}: now {usd(now, units=units.per):f} USD, unknown before", False
        elif was is not None and now is None:
            yield f"{units.label}: no price any more, {usd(was, units=units.per):f} USD before", True
        elif was is not None and now is not None:
            yield (
                f"{units.label}: {usd(was, units=units.per):f} -> {usd(now, units=units.per):f} USD",
                _jumped(was, now),
            )
    if old.long != new.long:
        yield f"long prompts: {long_prices(old)} -> {long_prices(new)}", _long_jumped(old, new)
    for name in ("context_window", "max_output_tokens", "status", "retired_on"):
        if getattr(old, name) != getattr(new, name):
            yield f"{name}: {getattr(old, name)} -> {getattr(new, name)}", False


def _long_jumped(old: ModelRecord, new: ModelRecord) -> bool:
    """Whether they went away, or are not about those of short prompts."""
    prices = new.prices
    far = any(
        _jumped(prices.get("input_ptoken", 0), long.input_ptoken)
        or _jumped(prices.get("output_ptoken", 0), long.output_ptoken)
        for long in new.long
    )
    return far or (bool(old.long) and not new.long)


def _jumped(was: int, now: int) -> bool:
    return now == 0 or was == 0 or max(now, was) > JUMP * min(now, was)


def _far_apart(record: ModelRecord, other: ModelRecord) -> bool:
    return any(_jumped(record.prices[name], price) for name, price in other.prices.items() if name in record.prices)


def _unlike(record: ModelRecord, other: ModelRecord) -> Iterator[str]:
    """The prices that both know and do not agree on, as the *other* has them."""
    for units in UNITS:
        mine, theirs = record.prices.get(units.field), other.prices.get(units.field)
        if mine is not None and theirs is not None and abs(mine - theirs) * ROUNDING > mine:
            figures = f"{usd(mine, units=units.per):f} USD, {usd(theirs, units=units.per):f}"
            yield f"{units.label}: {figures}"
    if record.long and other.long and record.long != other.long:
        yield f"long prompts: {long_prices(record)}, and {long_prices(other)}"


def _overridden(snapshot: Snapshot) -> Iterator[Difference]:
    for provider, models in snapshot.models.items():
        for listed in load_spec(provider).models:
            own = from_file(listed, provider)
            other = models.get(own.id)
            told = list(_unlike(own, other)) if other is not None else []
            if told:
                yield Difference(f"{provider}/{own.id}", f"{', '.join(told)} in the snapshot")
