"""Reads LiteLLM's ``model_prices_and_context_window.json``, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

from adapters.catalogue.record import ModelKind, ModelRecord, pico
from adapters.spec import ModelStatus
from adapters.types import LongPrice

Entry = Mapping[str, Any]

_KINDS: Final = {
    "chat": ModelKind.TEXT,
    "completion": ModelKind.TEXT,
    "responses": ModelKind.TEXT,
    "embedding": ModelKind.EMBEDDING,
    "rerank": ModelKind.RERANK,
    "audio_transcription": ModelKind.TRANSCRIPTION,
    "audio_speech": ModelKind.SPEECH,
}
"""By ``mode``; entries of any other are no models that are asked for here."""

_ABOVE: Final = re.compile(r"input_cost_per_token_above_([0-9]{1,6})k_tokens")
"""Those with more behind it are of other service tiers, and of batches."""
_HOUR_SECONDS: Final = 3600
_HIGHEST_USD: Final = {"input_cost_per_second": Decimal(1), "input_cost_per_character": Decimal("0.1")}
_HIGHEST_USD_A_TOKEN: Final = Decimal("0.01")
"""Above it a price is a slip of units, not a price."""


class PriceListError(Exception):
    """A price list cannot be read at all."""


def read_litellm(
    data: bytes, names: Mapping[str, str], canonical: Callable[[str, str], str]
) -> tuple[dict[str, dict[str, ModelRecord]], list[str]]:
    """Records by provider type and id, and remarks on entries that were left out.

    *names* maps LiteLLM's name of a provider to its type; *canonical* makes a canonical name of type and id.
    """
    try:
        entries = json.loads(data, parse_float=Decimal)
    except ValueError as error:
        raise PriceListError(f"this is no JSON: {error}") from None
    if not isinstance(entries, dict):
        raise PriceListError("a JSON object, one entry a model, is expected")
    found: dict[str, dict[str, ModelRecord]] = {}
    remarks: list[str] = []
    for key, entry in entries.items():
        if not isinstance(entry, dict) or entry.get("litellm_provider") not in names:
            continue
        their_name = str(entry["litellm_provider"])
        provider = names[their_name]
        model = key.removeprefix(f"{their_name}/")
        if entry.get("mode") not in _KINDS or _stands_for_a_size(key, their_name):
            continue
        try:
            record = _record(model, canonical(provider, model), their_name, entry)
        except ValueError as error:
            remarks.append(f"{provider}/{model}: left out: {error}")
            continue
        if not any(record.prices.values()):
            # Nobody gives it away: it is charged in a unit that the entry has no word for.
            remarks.append(f"{provider}/{model}: left out: no price above 0")
            continue
        found.setdefault(provider, {})[model] = record
    for models in found.values():
        for model in list(_shortened(models)):
            del models[model]
    return found, remarks


def _record(model: str, canonical: str, their_name: str, entry: Entry) -> ModelRecord:
    kind = _KINDS[entry["mode"]]
    ends = _date(entry.get("deprecation_date"))
    successor = entry.get("successor_model")
    second = _price(entry, "input_cost_per_second")
    long = tuple(_long(entry))
    output = _price(entry, "output_cost_per_token")
    if output is None and kind in (ModelKind.EMBEDDING, ModelKind.RERANK):
        output = 0
    return ModelRecord(
        id=model,
        canonical=canonical,
        kind=kind,
        context_window=_count(entry, "max_input_tokens"),
        max_output_tokens=_count(entry, "max_output_tokens"),
        input_ptoken=_price(entry, "input_cost_per_token"),
        output_ptoken=output,
        cached_input_ptoken=_price(entry, "cache_read_input_token_cost"),
        audio_phour=second * _HOUR_SECONDS if second else None,
        pcharacter=_price(entry, "input_cost_per_character"),
        long=long,
        long_prompts_cost_more=not long and any(name.startswith("input_cost_per_token_above_") for name in entry),
        vision=entry.get("supports_vision") is True,
        status=ModelStatus.DEPRECATED if ends is not None else ModelStatus.PRODUCTION,
        retired_on=ends,
        successor=successor.removeprefix(f"{their_name}/") if isinstance(successor, str) else None,
        sources=("litellm",),
    )


def _long(entry: Entry) -> Iterator[LongPrice]:
    """What longer prompts cost; where the answer's price is not told, it is that of a short prompt's."""
    found = {int(match[1]) * 1000: name for name in entry if (match := _ABOVE.fullmatch(name))}
    for above, name in sorted(found.items()):
        past = name.removeprefix("input_cost_per_token")
        price = _price(entry, name)
        output = _price(entry, f"output_cost_per_token{past}")
        output = _price(entry, "output_cost_per_token") if output is None else output
        cached = _price(entry, f"cache_read_input_token_cost{past}")
        if price is not None and output is not None:
            yield LongPrice(above, price, output, cached)


def _price(entry: Entry, name: str) -> int | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError(f"{name} is no number")
    usd = Decimal(value)
    if usd < 0:
        raise ValueError(f"{name} is below 0")
    highest = _HIGHEST_USD.get(name, _HIGHEST_USD_A_TOKEN)
    if usd > highest:
        raise ValueError(f"{name} is {usd} USD, and above {highest} it is a slip of units")
    return pico(usd)


def _count(entry: Entry, name: str) -> int | None:
    value = entry.get(name)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _stands_for_a_size(key: str, their_name: str) -> bool:
    """Whether the entry prices every model of a size, under a name that no provider knows."""
    return key.startswith(their_name.replace("_", "-") + "-")


def _shortened(models: Mapping[str, ModelRecord]) -> Iterator[str]:
    """Ids that are only the last part of another one, at the same price: LiteLLM's own short names."""
    long = {(model.rpartition("/")[2], record.price) for model, record in models.items() if "/" in model}
    for model, record in models.items():
        if "/" not in model and (model, record.price) in long:
            yield model
