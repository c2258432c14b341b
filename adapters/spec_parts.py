"""The sections of a provider file about reaching it: transport, endpoints, models; and what every section shares.

Typed keys are those the code acts on. What only explains (limits of a free plan, how a quirk was seen) stands under
``facts`` and ``note``, so that a misspelt key can never pass for a remark. Nothing reads those two but people.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from adapters.validation import did_you_mean
from adapters.vocabulary import ENDPOINTS, PARAMETERS, ModelStatus, Patch, Support

_AVAILABLE = (Support.NATIVE, Support.LIMITED, Support.CONDITIONAL)
T = TypeVar("T")


def _parameter(name: str) -> str:
    if name not in PARAMETERS:
        raise ValueError(f"'{name}' is not a parameter.{did_you_mean(name, PARAMETERS)}")
    return name


def _endpoint(name: str) -> str:
    if name not in ENDPOINTS:
        raise ValueError(f"'{name}' is not an endpoint.{did_you_mean(name, ENDPOINTS)}")
    return name


def _as_tuple(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else (value,)


ParamName = Annotated[str, AfterValidator(_parameter)]
EndpointName = Annotated[str, AfterValidator(_endpoint)]
Statuses = Annotated[tuple[int, ...], BeforeValidator(_as_tuple)]
Words = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Models = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
"""Canonical model names, or prefixes of them."""
Confidence = Literal[1, 2, "contested"]
"""2: two sources agree; 1: one source; contested: they differ, and the cautious side was taken."""


def is_one_of(canonical: str, models: tuple[str, ...]) -> bool:
    """Whether the model of that canonical name is one of *models*, which are names or prefixes."""
    return canonical.startswith(models) if models else False


def for_model(by_model: Mapping[str, T], canonical: str) -> T | None:
    """What a mapping by canonical names says of one model; the longest prefix is the most particular one."""
    found = [prefix for prefix in by_model if canonical.startswith(prefix)]
    return by_model[max(found, key=len)] if found else None


class Fact(BaseModel):
    """What may be said of anything: how sure it is, where it comes from, and remarks."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True)

    conf: Confidence | None = None
    src: tuple[str, ...] = ()
    note: str | None = None
    facts: Mapping[str, Any] = Field(default_factory=dict)


class Entry(Fact):
    """Support for something, and what to do about it."""

    support: Support
    patch: Patch | None = None
    status: int | None = None
    """What a request that uses it is answered with, where it is refused."""
    message_like: str | None = None
    models: Models = ()
    """With ``conditional``: the only models that have it natively."""

    def held_by(self, canonical: str) -> bool:
        """Whether the model of that canonical name has it as OpenAI does, as far as can be known beforehand."""
        if self.support is Support.CONDITIONAL and self.models:
            return is_one_of(canonical, self.models)
        return self.support in _AVAILABLE


class AuthSpec(Fact):
    """How the provider's key is sent."""

    header: str = "Authorization"
    scheme: str = "Bearer"
    env: str | None = None
    """The environment variable its own documentation uses."""
    optional: bool = False
    key_prefix: str | None = None
    flag: str | None = None

    def header_value(self, key: str) -> str:
        """The header's value for *key*."""
        return f"{self.scheme} {key}" if self.scheme else key


class HealthSpec(Fact):
    """A cheap request that tells whether a self-hosted engine is up; *path* is relative to the origin."""

    path: str


class UnknownFieldsSpec(Fact):
    """What a field the provider does not know does."""

    support: Support
    nested: bool = False
    """The same holds inside messages, tools and tool calls: see ``messages.fields``."""
    status: int | None = None
    code: str | None = None
    message_like: str | None = None

    @property
    def only_known(self) -> bool:
        """Only fields it is known to take may be sent: those of ``params`` it has, and ``extra_params``."""
        return self.support in (Support.REJECTED, Support.UNKNOWN)


class TransportSpec(Fact):
    """Where and how to reach the provider."""

    base_url: str | None = None
    """None: it runs at an address of the operator's."""
    alt_base_url: str | None = None
    auth: AuthSpec = AuthSpec()
    health: HealthSpec | None = None
    request_id_header: str | None = None
    keep_alive: bool = True
    """False: it drops kept-alive connections, so each request takes a fresh one."""
    max_body_bytes: int | None = None
    private_members: tuple[str, ...] = ()
    """Members of answers and chunks that are nothing for clients."""
    unknown_body_fields: UnknownFieldsSpec


class EndpointSpec(Fact):
    """One operation; *path* is relative to the base URL."""

    support: Support
    path: str | None = None
    lacks: tuple[str, ...] = ()
    unsure: tuple[Literal["dimensions"], ...] = ()
    """Taken, but perhaps without effect: sent, and looked for in the answer."""
    hint: str | None = None
    """What helps where it is not there after all."""

    @property
    def available(self) -> bool:
        """Whether a request may be sent at all."""
        return self.path is not None and self.support in _AVAILABLE


class ModelIdsSpec(Fact):
    """How the provider's model ids are made from canonical names."""

    prefix: str = ""
    dot: str = "."
    """What stands for the dot of a version."""


class TierSpec(Fact):
    """What a million tokens cost in a request with a longer prompt, of all tokens of it."""

    above: int
    """The length of prompt from which on, itself not included."""
    input: Decimal = Field(alias="in")
    output: Decimal = Field(alias="out")
    cached_input: Decimal | None = Field(default=None, alias="cached_in")


class ModelSpec(Fact):
    """A model the provider serves; prices in USD per million tokens as of the file's date."""

    id: str
    canonical: str
    context_window: int | None = Field(default=None, alias="ctx")
    max_output_tokens: int | None = Field(default=None, alias="max_out")
    input: Decimal | None = Field(default=None, alias="in")
    output: Decimal | None = Field(default=None, alias="out")
    cached_input: Decimal | None = Field(default=None, alias="cached_in")
    per_audio_hour: Decimal | None = None
    per_million_characters: Decimal | None = Field(default=None, alias="per_1m_chars")
    tiers: bool | tuple[TierSpec, ...] = False
    """What longer prompts cost, the shorter ones first; true: more than these prices, and nobody says how much."""
    vision: bool = False
    status: ModelStatus = ModelStatus.PRODUCTION
    retired_on: date | None = None
    lacks: tuple[ParamName, ...] = ()
    """Parameters it cannot honour although the provider takes them."""

    @property
    def offered(self) -> bool:
        """Whether it may be offered to clients unasked: in production, and priced by the token."""
        return self.status is ModelStatus.PRODUCTION and self.input is not None and self.retired_on is None
