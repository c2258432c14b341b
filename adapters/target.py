"""A target: one model at one provider, with everything adapters and policies may need to know about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapters.catalogue.record import ModelRecord
from adapters.fine_tunes import FineTunes
from adapters.spec import ProviderSpec
from adapters.types import Price


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One entry of a model's ``targets``. Compared by identity; *name* is unique within a model."""

    name: str
    """``provider/model``, as it stands in headers, metrics and the request log."""
    provider: str
    """The provider's name in the configuration."""
    model: str
    """What the provider calls the model; empty where it serves one model and ignores the field. The base model's
    name where there are fine-tunes."""
    spec: ProviderSpec
    """The provider file's facts with the provider's and the target's ``overrides`` applied."""
    price: Price | None = None
    """None: unknown, which is not the same as free."""
    price_from: str = ""
    """Who says so."""
    record: ModelRecord | None = None
    """What the catalogue knows of the model: its state, what it reads, prices by other units."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    weight: float = 1.0
    """Its share of the requests, beside the other targets' weights, where the model's strategy goes by weights."""
    traits: Mapping[str, str] = field(default_factory=dict)
    fine_tunes: FineTunes | None = None
    """The fine-tunes clients choose from, where the target stands for more than one model."""
