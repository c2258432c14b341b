"""What is known about a provider: a whole file of `providers/`, checked when it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from adapters.overrides import merge, with_config_source
from adapters.spec_answer import (
    ErrorCaseSpec,
    ErrorsSpec,
    FinishReasonSpec,
    LimitSpec,
    RateLimitHeadersSpec,
    ReasoningSpec,
    StreamingSpec,
    UsageSpec,
)
from adapters.spec_conflicts import Condition, ConditionKind, ConflictSpec
from adapters.spec_parts import (
    EndpointName,
    EndpointSpec,
    Entry,
    Fact,
    ModelIdsSpec,
    ModelSpec,
    ParamName,
    TransportSpec,
)
from adapters.spec_request import ContextSpec, DialectSpec, LoraSpec, MessagesSpec, ParamSpec
from adapters.validation import at, did_you_mean, raise_all
from adapters.vocabulary import (
    EMULATIONS,
    FROM_CONFIG,
    FROM_TRANSPORT,
    PARAMETERS,
    Kind,
    ModelStatus,
    PartSupport,
    Patch,
    PriceList,
    Support,
    Verified,
)

__all__ = [
    "FROM_CONFIG",
    "FROM_TRANSPORT",
    "PARAMETERS",
    "Condition",
    "ConditionKind",
    "ConflictSpec",
    "ContextSpec",
    "DialectSpec",
    "EndpointSpec",
    "Entry",
    "ErrorCaseSpec",
    "ErrorsSpec",
    "FinishReasonSpec",
    "Kind",
    "LimitSpec",
    "LoraSpec",
    "MessagesSpec",
    "ModelSpec",
    "ModelStatus",
    "ParamSpec",
    "PartSupport",
    "Patch",
    "ProviderSpec",
    "RateLimitHeadersSpec",
    "ReasoningSpec",
    "StreamingSpec",
    "Support",
    "TransportSpec",
    "UsageSpec",
    "Verified",
]


class ProviderSpec(Fact):
    """Everything one provider file says."""

    schema_: Literal[1] = Field(alias="schema")
    id: str
    name: str
    kind: Kind
    as_of: date
    verified: Verified = Verified.DOCUMENTED
    """How well all this is known to hold; what a single entry is worth is told by its ``conf``."""
    telemetry_name: str | None = None
    """The value of ``gen_ai.provider.name``, where it is not the id."""
    inherits: str | None = None
    lineage: tuple[str, ...] = ()
    """The ids of the files this one inherits from, nearest first; found when the file is read, never written in it."""
    transport: TransportSpec
    endpoints: Mapping[EndpointName, EndpointSpec]
    messages: MessagesSpec = MessagesSpec()
    params: Mapping[ParamName, ParamSpec] = Field(default_factory=dict)
    defaults: Mapping[str, int | float | str] = Field(default_factory=dict)
    """Sent for parameters the client leaves out, because the provider's own defaults are not OpenAI's."""
    extra_params: tuple[str, ...] = ()
    """Its own parameters, and OpenAI's without an entry in ``params``, that clients may send through."""
    conflicts: tuple[ConflictSpec, ...] = ()
    context: ContextSpec = ContextSpec()
    lora: LoraSpec | None = None
    """None: it is not known how a fine-tune over a base model is named there."""
    reasoning: ReasoningSpec = ReasoningSpec()
    streaming: StreamingSpec = StreamingSpec()
    usage: UsageSpec = UsageSpec()
    finish_reason: FinishReasonSpec = FinishReasonSpec()
    errors: ErrorsSpec = ErrorsSpec()
    rate_limit_headers: RateLimitHeadersSpec = RateLimitHeadersSpec()
    model_ids: ModelIdsSpec = ModelIdsSpec()
    models: tuple[ModelSpec, ...] = ()
    price_lists: Mapping[PriceList, str] = Field(default_factory=dict)
    """What other people's price lists call the provider: see `catalogue/`."""
    sources: Mapping[str, str] = Field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ProviderSpec({self.id!r})"

    @model_validator(mode="after")
    def _conflicts_name_parameters(self) -> Self:
        heads = {name.partition(".")[0] for name in PARAMETERS}
        whole = {name.partition(".")[0] for name in self.extra_params} | {"model"}
        unknown = [
            at(
                ("conflicts", number, "when", place),
                word,
                f"'{word}' is not a parameter.{did_you_mean(word, PARAMETERS | heads | whole)}",
            )
            for number, conflict in enumerate(self.conflicts)
            for place, word in enumerate(condition.param for condition in conflict.conditions)
            if word not in PARAMETERS | heads and word.partition(".")[0] not in whole
        ]
        raise_all(type(self), unknown)
        return self

    @model_validator(mode="after")
    def _choices_are_counted(self) -> Self:
        facts = self.params.get("n")
        unbounded = facts is not None and facts.support is Support.LIMITED and facts.max is None
        if unbounded and facts is not None and facts.patch is not Patch.FAN_OUT:
            message = "'limited' needs 'max', the most choices of one request, or 'patch: fan_out'"
            raise_all(type(self), [at(("params", "n"), None, message)])
        return self

    @property
    def hosted(self) -> bool:
        return self.kind is Kind.HOSTED

    def canonical(self, model: str) -> str:
        """The canonical name of a model by the provider's id for it, as ``by_model`` and ``models`` are written.

        Of a model that is not listed, it is the last part of the id in lower case.
        """
        for listed in self.models:
            if listed.id == model:
                return listed.canonical
        name = model.rpartition("/")[2].lower()
        dot = self.model_ids.dot
        return name if dot == "." else re.sub(rf"(?<=[0-9]){re.escape(dot)}(?=[0-9])", ".", name)

    def for_model(self, model: ModelSpec) -> ProviderSpec:
        """These facts as they hold for *model*: what it lacks is emulated where there is a way."""
        params: dict[str, Any] = {}
        for name in model.lacks:
            params[name] = {"support": Support.REJECTED, "src": model.src}
            known = self.params.get(name)
            if known is not None:
                params[name] |= {"patch": known.patch if known.patch in EMULATIONS else None, "hint": known.hint}
        return self.with_overrides({"params": params} if params else {})

    def with_overrides(self, overrides: Mapping[str, Any]) -> ProviderSpec:
        """These facts with *overrides* laid over them; raises pydantic's ``ValidationError`` when they do not fit.

        How the two are merged is told in `overrides.py`.
        """
        if not overrides:
            return self
        base = self.model_dump(by_alias=True, exclude_unset=True)
        return ProviderSpec.model_validate(merge(base, with_config_source(overrides)))

    def with_conflicts(self, conflicts: Sequence[Mapping[str, Any]]) -> ProviderSpec:
        """These facts with further *conflicts*."""
        known = self.model_dump(by_alias=True, exclude_unset=True).get("conflicts", ())
        return self.with_overrides({"conflicts": [*known, *conflicts]}) if conflicts else self
