"""What is known about a provider: a whole file of `providers/`, checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

from pydantic import Field

from adapters.overrides import merge, with_config_source
from adapters.spec_parts import (
    ConflictSpec,
    EndpointSpec,
    ErrorCaseSpec,
    ErrorsSpec,
    Fact,
    FinishReasonSpec,
    MessagesSpec,
    ModelSpec,
    ParamName,
    ParamSpec,
    RateLimitHeadersSpec,
    ReasoningSpec,
    StreamingSpec,
    TransportSpec,
    UsageSpec,
)
from adapters.vocabulary import FROM_CONFIG, FROM_TRANSPORT, PARAMETERS, Kind, ModelStatus, Patch, Support

__all__ = [
    "FROM_CONFIG",
    "FROM_TRANSPORT",
    "PARAMETERS",
    "EndpointSpec",
    "ErrorCaseSpec",
    "Kind",
    "MessagesSpec",
    "ModelSpec",
    "ModelStatus",
    "ParamSpec",
    "Patch",
    "ProviderSpec",
    "Support",
    "TransportSpec",
]


class ProviderSpec(Fact):
    """Everything one provider file says."""

    schema_: Literal[1] = Field(alias="schema")
    id: str
    name: str
    kind: Kind
    as_of: date
    inherits: str | None = None
    transport: TransportSpec
    endpoints: Mapping[str, EndpointSpec]
    messages: MessagesSpec = MessagesSpec()
    params: Mapping[ParamName, ParamSpec] = Field(default_factory=dict)
    defaults: Mapping[str, int | float] = Field(default_factory=dict)
    """Sent for parameters the client leaves out, because the provider's own defaults are not OpenAI's."""
    extra_params: tuple[str, ...] = ()
    conflicts: tuple[ConflictSpec, ...] = ()
    reasoning: ReasoningSpec = ReasoningSpec()
    streaming: StreamingSpec = StreamingSpec()
    usage: UsageSpec = UsageSpec()
    finish_reason: FinishReasonSpec = FinishReasonSpec()
    errors: ErrorsSpec = ErrorsSpec()
    rate_limit_headers: RateLimitHeadersSpec = RateLimitHeadersSpec()
    models: tuple[ModelSpec, ...] = ()
    sources: Mapping[str, str] = Field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ProviderSpec({self.id!r})"

    @property
    def hosted(self) -> bool:
        return self.kind is Kind.HOSTED

    def for_model(self, model: ModelSpec) -> ProviderSpec:
        """These facts as they hold for *model*: what it lacks is refused."""
        refused = {"support": Support.REJECTED, "patch": Patch.ERROR, "src": model.src}
        hints = {name: self.params[name].hint for name in model.lacks if name in self.params}
        params = {name: {**refused, "hint": hints.get(name)} for name in model.lacks}
        return self.with_overrides({"params": params} if params else {})

    def with_overrides(self, overrides: Mapping[str, Any]) -> ProviderSpec:
        """These facts with *overrides* laid over them; raises pydantic's ``ValidationError`` when they do not fit.

        How the two are merged is told in `overrides.py`.
        """
        if not overrides:
            return self
        base = self.model_dump(by_alias=True, exclude_unset=True)
        return ProviderSpec.model_validate(merge(base, with_config_source(overrides)))
