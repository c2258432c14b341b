"""The models clients can ask for: what each name means, and which targets answer to it."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from adapters.catalogue.merged import find_record, own_record
from adapters.catalogue.record import MILLION, ModelRecord, pico
from adapters.draft import Unsupported
from adapters.fine_tunes import PLACEHOLDER, FineTunes, adapter_of
from adapters.registry import load_spec
from adapters.spec import Kind, ProviderSpec
from adapters.target import Target
from adapters.types import Price
from gateway.config.model_settings import ModelSettings, TargetSettings
from gateway.config.provider_settings import LOCAL_SLOTS, ProviderSettings
from gateway.config.schema import PATTERN_END
from gateway.local_models import context_of, fine_tunes_of, local_model_name
from gateway.settings import Settings

FIRST_EVENT_SECONDS = 30.0
FIRST_EVENT_LOCAL_SECONDS = 120.0
"""A small machine may read a long prompt for minutes before the first token."""
STALL_SECONDS = 30.0
_MAX_REMEMBERED = 1024
_FREE = Price(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Model:
    """A name clients may put in ``model``, with its targets in the order of the configuration."""

    id: str
    targets: tuple[Target, ...]
    strategy: str = "priority"
    total_seconds: float = 600.0
    """For all attempts of a request together."""
    first_event_seconds: float = FIRST_EVENT_SECONDS
    stall_seconds: float = STALL_SECONDS
    attempts: int = 3
    unsupported: Unsupported = Unsupported.AUTO
    """What is done about parameters a target lacks, where the client does not say."""
    pattern: str = ""
    """The name in the configuration, where *id* is one of the many it stands for. Metrics are labelled with this one,
    for clients choose the others."""

    @property
    def many(self) -> bool:
        """Whether this is not one model but a pattern for many."""
        return self.id.endswith(PATTERN_END)


class Catalog:
    """All models of one configuration. Never changes; a reload builds another."""

    def __init__(self, models: Mapping[str, Model], aliases: Mapping[str, str], exposed: Mapping[str, Model]) -> None:
        self.models = models
        """By id, in the order of the configuration; aliases and exposed provider models are not in it."""
        self.aliases = aliases
        self.exposed = exposed
        """``provider/model`` to a model of that one target; empty unless ``expose_provider_models``."""
        # The longest pattern is the most particular one; between equals the alphabet decides, not the file's order.
        self._many = sorted(
            (model for model in models.values() if model.many), key=lambda model: (-len(model.id), model.id)
        )
        meant = {alias: models.get(model) or self._fine_tune(model) for alias, model in aliases.items()}
        known = {alias: model for alias, model in meant.items() if model is not None}
        self.named: Mapping[str, Model] = {alias: model for alias, model in known.items() if not _is_glob(alias)}
        """The models that aliases mean, but for aliases that are patterns."""
        self._names: dict[str, Model] = {
            **exposed,
            **self.named,
            **{name: model for name, model in models.items() if not model.many},
        }
        globs = sorted((alias for alias in known if _is_glob(alias)), key=lambda alias: (-len(alias), alias))
        self._globs = [(re.compile(fnmatch.translate(glob)), known[glob]) for glob in globs]
        self._matched: dict[str, Model | None] = {}

    @classmethod
    def build(cls, settings: Settings) -> Catalog:
        """The catalogue of checked *settings*."""
        specs = {name: _provider_spec(provider) for name, provider in settings.providers.items()}
        models = {name: _model(name, model, settings, specs) for name, model in settings.models.items()}
        exposed = _exposed(settings, specs, models) if settings.expose_provider_models else {}
        return cls(models, settings.aliases, exposed)

    def resolve(self, name: str) -> Model | None:
        """The model *name* means: an id, an alias, ``provider/model`` where exposed, else the longest pattern."""
        model = self._names.get(name)
        if model is not None or not (self._globs or self._many):
            return model
        return self._match(name)

    def pattern_of(self, name: str) -> Model | None:
        """The pattern that *name* would belong to, whether or not there is such a fine-tune."""
        return next((model for model in self._many if name.startswith(model.id.removesuffix("*"))), None)

    def nearest(self, name: str) -> list[str]:
        """Up to three names that look like *name*, best first."""
        folded = {known.lower(): known for known in self._names}
        return [folded[near] for near in difflib.get_close_matches(name[:200].lower(), folded, n=3, cutoff=0.5)]

    def _match(self, name: str) -> Model | None:
        if name in self._matched:
            return self._matched[name]
        found = self._fine_tune(name)
        if found is None:
            found = next((model for pattern, model in self._globs if pattern.match(name)), None)
        # Names come from clients: what is remembered has to have an end.
        if len(self._matched) < _MAX_REMEMBERED:
            self._matched[name] = found
        return found

    def _fine_tune(self, name: str) -> Model | None:
        """The model of one fine-tune, which shares all but its name with the others of its pattern."""
        for model in self._many:
            if adapter_of(model.id, name) is not None:
                return replace(model, id=name, pattern=model.id)
        return None


def _is_glob(alias: str) -> bool:
    return "*" in alias or "?" in alias


def _provider_spec(provider: ProviderSettings) -> ProviderSpec:
    spec = load_spec(provider.type)
    if provider.local:
        # The engine answers as many choices at once as it has slots.
        n = spec.params["n"].model_dump(exclude_unset=True) | {"max": provider.slots or LOCAL_SLOTS}
        spec = spec.with_overrides({"params": {"n": n}})
    return spec.with_overrides(provider.overrides)


def _model(name: str, model: ModelSettings, settings: Settings, specs: Mapping[str, ProviderSpec]) -> Model:
    targets = tuple(
        _target(target, settings.providers[target.provider], specs[target.provider], pattern=name)
        for target in model.targets
    )
    local = any(target.spec.kind is Kind.IN_PROCESS for target in targets)
    clocks = model.timeouts
    return Model(
        id=name,
        targets=targets,
        strategy=model.route.strategy,
        total_seconds=clocks.total or settings.server.request_timeout,
        first_event_seconds=clocks.first_event or (FIRST_EVENT_LOCAL_SECONDS if local else FIRST_EVENT_SECONDS),
        stall_seconds=clocks.stall or STALL_SECONDS,
        attempts=model.retries.attempts,
        unsupported=model.unsupported,
    )


def _target(target: TargetSettings, provider: ProviderSettings, spec: ProviderSpec, *, pattern: str = "") -> Target:
    # Fine-tunes cost, hold and can do what their base does.
    model = target.base or target.model or local_model_name(provider)
    listed = next((entry for entry in spec.models if entry.id == model), None)
    if listed is not None and listed.lacks:
        # What the operator says of the provider still comes after what its file says of a model.
        spec = spec.for_model(listed).with_overrides(provider.overrides)
    # The snapshot is for targets without a price: nobody else waits for it to be read.
    record = find_record(spec, model) if target.price is None else own_record(spec, model)
    price, price_from = _price(target, record, spec)
    return Target(
        name=f"{target.provider}/{model}",
        provider=target.provider,
        model=model,
        spec=spec.with_overrides(target.overrides),
        price=price,
        price_from=price_from,
        record=record,
        context_window=target.context_window or _context_window(provider, record),
        max_output_tokens=target.max_output_tokens or (listed.max_output_tokens if listed else None),
        weight=1.0 if target.weight is None else target.weight,
        traits=dict(target.traits),
        fine_tunes=FineTunes(pattern, target.base, target.model or PLACEHOLDER, target.adapters)
        if target.base
        else fine_tunes_of(provider, pattern),
    )


def _context_window(provider: ProviderSettings, record: ModelRecord | None) -> int | None:
    if provider.local:
        return context_of(provider)
    return record.context_window if record else None


def _price(target: TargetSettings, record: ModelRecord | None, spec: ProviderSpec) -> tuple[Price | None, str]:
    """The price by the configuration, else the provider's file, else the snapshot; and who says so."""
    if (own := target.price) is not None:
        cached = ptoken(own.cached_input) if own.cached_input is not None else None
        return Price(ptoken(own.input), ptoken(own.output), cached), "configuration"
    if record is not None and record.price is not None:
        return record.price, record.sources[0]
    return (_FREE, "runs here") if spec.kind is Kind.IN_PROCESS else (None, "")


def ptoken(usd_per_million: Decimal) -> int:
    """USD per million tokens as pico-USD a token: 0.15 is 150,000."""
    return pico(usd_per_million, units=MILLION)


def _exposed(settings: Settings, specs: Mapping[str, ProviderSpec], models: Mapping[str, Model]) -> dict[str, Model]:
    """Every configured target and every model a provider's file offers, as ``provider/model``.

    Only these: a name made up by a client must not become a model, since metrics are labelled with it.
    """
    exposed: dict[str, Model] = {}
    for model in models.values():
        for target in model.targets:
            if target.fine_tunes is None:
                exposed.setdefault(target.name, _alone(target, model, settings))
    for name, provider in settings.providers.items():
        for listed in specs[name].models:
            entry = TargetSettings(provider=name, model="" if provider.local else listed.id)
            target = _target(entry, provider, specs[name])
            if listed.offered and target.name not in exposed:
                exposed[target.name] = _alone(target, None, settings)
    return exposed


def _alone(target: Target, model: Model | None, settings: Settings) -> Model:
    local = target.spec.kind is Kind.IN_PROCESS
    first = FIRST_EVENT_LOCAL_SECONDS if local else FIRST_EVENT_SECONDS
    if model is None:
        total = settings.server.request_timeout
        return Model(target.name, (target,), total_seconds=total, first_event_seconds=first)
    return Model(
        target.name, (target,), total_seconds=model.total_seconds, first_event_seconds=model.first_event_seconds,
        stall_seconds=model.stall_seconds, attempts=model.attempts, unsupported=model.unsupported,
    )  # fmt: skip
