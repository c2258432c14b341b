"""Whether the configured models are still served: a retired one is refused, one that is about to go is remarked on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from adapters.catalogue.merged import find_record, own_record, successor_of
from adapters.catalogue.record import Life, ModelRecord
from adapters.located_yaml import Path
from adapters.registry import UnknownProviderTypeError, load_spec
from adapters.spec import ProviderSpec
from gateway.config.model_settings import TargetSettings
from gateway.config.provider_settings import ProviderSettings
from gateway.config.schema import Settings


class Served(NamedTuple):
    """What there is to say of the models of a configuration."""

    findings: list[tuple[Path, bool, str]]
    """Targets that cannot work: a path, whether the key itself is meant, and a message."""
    notes: list[str]


def check_served(settings: Settings, today: date) -> Served:
    """What there is to say on *today*.

    Refused is only what our own file calls retired, at the provider's own address: a model that is gone from its
    public service may well go on at an address of one's own, and other people's lists may be wrong.
    """
    served = Served([], [])
    for name, model in settings.models.items():
        for index, target in enumerate(model.targets):
            provider = settings.providers.get(target.provider)
            spec = _spec(provider)
            if provider is None or spec is None:
                continue
            for refused, text in _judged(target, provider, spec, today):
                key = "base" if target.base else "model"
                if refused:
                    served.findings.append((("models", name, "targets", index, key), False, text))
                else:
                    served.notes.append(f"{name}: {text}")
    return served


def _spec(provider: ProviderSettings | None) -> ProviderSpec | None:
    try:
        return load_spec(provider.type) if provider is not None and not provider.local else None
    except UnknownProviderTypeError:
        return None  # told with the provider


def _judged(
    target: TargetSettings, provider: ProviderSettings, spec: ProviderSpec, today: date
) -> Iterator[tuple[bool, str]]:
    model = target.base or target.model
    own = own_record(spec, model)
    record = own or (find_record(spec, model) if target.price is None else None)
    if record is None:
        return
    life, at = record.life(today), f"{target.provider}/{model}"
    if life is Life.RETIRED:
        refused = own is not None and _is_own_address(provider, spec)
        yield refused, f"{_retired(spec, record, at)}{_instead(spec, record)}"
    elif life is Life.ENDING:
        yield False, f"{at} is retired on {record.retired_on}{_instead(spec, record)}"
    elif life is Life.DEPRECATED:
        until = f" and ends on {record.retired_on}" if record.retired_on else ""
        yield False, f"{at} is deprecated{until}{_instead(spec, record)}"
    elif life is Life.DOUBTED:
        yield False, f"{at}: sources differ on whether {spec.name} still serves it"
    elif life is Life.PREVIEW:
        yield False, f"{at} is a preview: it may change or go without notice"


def _is_own_address(provider: ProviderSettings, spec: ProviderSpec) -> bool:
    if provider.unix_socket is not None:
        return False
    return provider.base_url is None or provider.address(spec) in (
        spec.transport.base_url,
        spec.transport.alt_base_url,
    )


def _retired(spec: ProviderSpec, record: ModelRecord, at: str) -> str:
    when = f" on {record.retired_on}" if record.retired_on else ""
    return f"{spec.name} retired {at}{when}, says {record.sources[0]}"


def _instead(spec: ProviderSpec, record: ModelRecord) -> str:
    successor = successor_of(spec, record)
    return f"; take {successor} in its place" if successor is not None and successor != record.id else ""
