"""The keys of a model in the configuration file: its targets, and how they are chosen and tried."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from adapters.draft import Unsupported
from gateway.config.section import Section
from gateway.config.units import Seconds

Usd = Annotated[Decimal, Field(ge=0, le=1_000_000)]


class PriceSettings(Section):
    """USD per million tokens."""

    input: Usd = Field(description="Prompt tokens.")
    output: Usd = Field(description="Generated tokens.")
    cached_input: Usd | None = Field(default=None, description="Prompt tokens read from the provider's cache.")


class TargetSettings(Section):
    """One model at one provider."""

    provider: str = Field(description="A name under providers.")
    model: str = Field(
        default="", description="What the provider calls the model; {adapter} is the client's part of a pattern."
    )
    base: str = Field(default="", description="What the provider calls the model under the fine-tunes of a pattern.")
    adapters: dict[str, str | int] = Field(
        default={}, description="Fine-tunes by the client's part of the name, with what the provider calls each."
    )
    price: PriceSettings | None = Field(default=None, description="In place of the catalogue's price.")
    context_window: int | None = Field(default=None, ge=1, description="Most tokens of prompt and answer.")
    max_output_tokens: int | None = Field(default=None, ge=1, description="Most tokens of an answer.")
    weight: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Its share under strategy weighted; 1. With 0 it is asked when no other answers.",
    )
    traits: dict[str, str] = Field(
        default={}, description="Words of yours that `gateway models show` tells: region, hardware."
    )
    overrides: dict[str, Any] = Field(default={}, description="Facts that differ from the provider file's.")


class RouteSettings(Section):
    """How targets are chosen."""

    strategy: Literal["priority", "weighted"] = Field(
        default="priority", description="priority: in the order of the list. weighted: by lot, in proportion to weight."
    )


class TimeoutSettings(Section):
    """Clocks of a request; they stop while the gateway waits for its own client."""

    total: Seconds | None = Field(default=None, description="The whole request; else server.request_timeout.")
    first_event: Seconds | None = Field(
        default=None, description="Until the first content; 30s, 120s for the local engine."
    )
    stall: Seconds | None = Field(default=None, description="Between two pieces of content; 30s.")


class RetrySettings(Section):
    """How often a request is tried."""

    attempts: int = Field(default=3, ge=1, le=10, description="Most tries at one target.")


class ModelSettings(Section):
    """A name clients put in `model`, and who answers to it."""

    targets: tuple[TargetSettings, ...] = Field(min_length=1, description="Tried in the order of route.strategy.")
    route: RouteSettings = Field(default=RouteSettings(), description="How targets are chosen.")
    unsupported: Unsupported = Field(
        default=Unsupported.AUTO,
        description="What to do about parameters a target lacks: auto, emulate, reject or drop.",
    )
    timeouts: TimeoutSettings = Field(default=TimeoutSettings(), description="Clocks of a request.")
    retries: RetrySettings = Field(default=RetrySettings(), description="How often a request is tried.")
