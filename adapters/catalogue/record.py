"""What is known of one model at one provider, and when it stops being served."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import msgspec

from adapters.spec import ModelSpec, ModelStatus
from adapters.spec_parts import TierSpec
from adapters.types import LongPrice, Price

WARN_BEFORE: Final = timedelta(days=30)
"""How long before a model is retired one is warned of it."""

PICO: Final = 10**12
MILLION: Final = 10**6


class ModelKind(StrEnum):
    """What goes into a model and comes out of it."""

    TEXT = "text"
    EMBEDDING = "embedding"
    TRANSCRIPTION = "transcription"
    SPEECH = "speech"
    RERANK = "rerank"


class ModelRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the catalogue. Prices are whole pico-USD of a unit; None is unknown, which is not free."""

    id: str
    """What the provider calls it."""
    canonical: str = ""
    """What it is called across providers."""
    kind: ModelKind = ModelKind.TEXT
    context_window: int | None = None
    """Most tokens of a prompt, at the least."""
    max_output_tokens: int | None = None
    input_ptoken: int | None = None
    output_ptoken: int | None = None
    cached_input_ptoken: int | None = None
    audio_phour: int | None = None
    """An hour of sound that is listened to."""
    pcharacter: int | None = None
    """A character that is spoken."""
    long: tuple[LongPrice, ...] = ()
    """What longer prompts cost, the shorter ones first."""
    long_prompts_cost_more: bool = False
    """The prices are those of short prompts; past some length the provider takes more, and nobody says how much."""
    vision: bool = False
    status: ModelStatus = ModelStatus.PRODUCTION
    retired_on: date | None = None
    successor: str | None = None
    """The id of the model the provider names in its place."""
    sources: tuple[str, ...] = ()
    """Who says so, the one whose figures these are first."""

    @property
    def price(self) -> Price | None:
        """The price by tokens, where both sides are known."""
        if self.input_ptoken is None or self.output_ptoken is None:
            return None
        return Price(self.input_ptoken, self.output_ptoken, self.cached_input_ptoken, self.long)

    @property
    def prices(self) -> dict[str, int]:
        """Every known price by the name of its field."""
        found = {name: getattr(self, name) for name in PRICE_FIELDS}
        return {name: price for name, price in found.items() if price is not None}

    def life(self, today: date) -> Life:
        """How much longer it is served, as of *today*."""
        past = self.retired_on is not None and self.retired_on <= today
        if self.status is ModelStatus.VERIFY:
            return Life.DOUBTED
        if past or self.status is ModelStatus.RETIRED:
            return Life.RETIRED
        if self.retired_on is not None and self.retired_on <= today + WARN_BEFORE:
            return Life.ENDING
        if self.status is ModelStatus.DEPRECATED:
            return Life.DEPRECATED
        return Life.PREVIEW if self.status is ModelStatus.PREVIEW else Life.SERVED


PRICE_FIELDS: Final = ("input_ptoken", "output_ptoken", "cached_input_ptoken", "audio_phour", "pcharacter")


class Life(StrEnum):
    """Where a model stands between its first day and its last."""

    SERVED = "served"
    PREVIEW = "preview"
    DEPRECATED = "deprecated"
    ENDING = "ending"  # within `WARN_BEFORE`
    DOUBTED = "uncertain"  # sources differ on whether it is served at all
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Units:
    """The field of a price, and what people call one of its unit."""

    field: str
    label: str
    per: int
    """Units that people name a price for."""


UNITS: Final = (
    Units("input_ptoken", "input", MILLION),
    Units("output_ptoken", "output", MILLION),
    Units("cached_input_ptoken", "cached input", MILLION),
    Units("audio_phour", "an hour of sound", 1),
    Units("pcharacter", "characters", MILLION),
)
"""Prices as people name them: USD for a million tokens, a million characters, one hour."""


def pico(usd: Decimal, *, units: int = 1) -> int:
    """*usd* for that many *units* as whole pico-USD for one: 0.15 for a million is 150,000."""
    return int((usd * PICO / units).to_integral_value())


def usd(pico_usd: int, *, units: int = 1) -> Decimal:
    """What *units* cost at *pico_usd* each, in USD, without zeros at the end."""
    return (Decimal(pico_usd) * units / PICO).normalize()


def long_prices(record: ModelRecord) -> str:
    """What longer prompts cost, in USD for a million tokens read, written and read from the cache."""
    told = []
    for long in record.long:
        prices = (long.input_ptoken, long.output_ptoken, long.cached_input_ptoken)
        figures = " / ".join("-" if price is None else f"{usd(price, units=MILLION):f}" for price in prices)
        told.append(f"over {long.above_tokens} tokens {figures}")
    return ", ".join(told) or ("more" if record.long_prompts_cost_more else "the same")


def from_file(listed: ModelSpec, source: str) -> ModelRecord:
    """The record of a model that a provider's file lists; *source* says which file."""

    def price(figure: Decimal | None, units: int) -> int | None:
        return None if figure is None else pico(figure, units=units)

    return ModelRecord(
        id=listed.id,
        canonical=listed.canonical,
        kind=_kind(listed),
        context_window=listed.context_window,
        max_output_tokens=listed.max_output_tokens,
        input_ptoken=price(listed.input, MILLION),
        output_ptoken=price(listed.output, MILLION),
        cached_input_ptoken=price(listed.cached_input, MILLION),
        audio_phour=price(listed.per_audio_hour, 1),
        pcharacter=price(listed.per_million_characters, MILLION),
        long=tuple(_long(tier) for tier in listed.tiers) if not isinstance(listed.tiers, bool) else (),
        long_prompts_cost_more=listed.tiers is True,
        vision=listed.vision,
        status=listed.status,
        retired_on=listed.retired_on,
        sources=(source,),
    )


def _long(tier: TierSpec) -> LongPrice:
    cached = None if tier.cached_input is None else pico(tier.cached_input, units=MILLION)
    return LongPrice(tier.above, pico(tier.input, units=MILLION), pico(tier.output, units=MILLION), cached)


def _kind(listed: ModelSpec) -> ModelKind:
    if listed.per_audio_hour is not None:
        return ModelKind.TRANSCRIPTION
    if listed.per_million_characters is not None:
        return ModelKind.SPEECH
    # A model whose answers cost nothing gives vectors.
    return ModelKind.EMBEDDING if listed.output == 0 and listed.input else ModelKind.TEXT


def laid_over(record: ModelRecord, other: ModelRecord) -> ModelRecord:
    """*record* with what it does not say taken from *other*; prices only all together.

    Half of a price from here and half from there would be nobody's. The state of a model goes together too: a date
    from elsewhere must not retire what our own file says is served.
    """
    fields: dict[str, Any] = {
        name: getattr(other, name)
        for name in ("context_window", "max_output_tokens", "successor")
        if getattr(record, name) is None
    }
    sources = (*record.sources, *other.sources)
    if not record.prices and other.prices:
        fields |= {name: getattr(other, name) for name in (*PRICE_FIELDS, "long", "long_prompts_cost_more")}
        sources = (*other.sources, *record.sources)
    merged = msgspec.structs.replace(record, **fields, sources=tuple(dict.fromkeys(sources)))
    window, most = merged.context_window, merged.max_output_tokens
    if window is not None and most is not None and most > window:
        # One of the two is from elsewhere, and cannot be right here.
        merged = msgspec.structs.replace(merged, max_output_tokens=window)
    return merged
