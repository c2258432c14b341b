"""Checks of models that stand for many fine-tunes: their names, and how each target is told which one is meant."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from adapters.fine_tunes import PLACEHOLDER, adapter_of
from adapters.located_yaml import Path
from adapters.spec import LoraSpec, ProviderSpec
from gateway.config.model_settings import ModelSettings, TargetSettings
from gateway.config.provider_settings import ProviderSettings
from gateway.config.schema import PATTERN_END

Finding = tuple[Path, bool, str]


def check_name(name: str) -> Iterator[Finding]:
    """What is wrong with a model's name that has a ``*`` in it."""
    if name.count("*") > 1:
        yield ("models", name), True, f"'{name}' has more than one '*'; it stands for one part, at the end"
    elif not name.endswith(PATTERN_END) or name == PATTERN_END:
        yield (
            ("models", name),
            True,
            f"'{name}': a model for many fine-tunes is named 'something{PATTERN_END}'; for other names, 'aliases' take "
            "patterns",
        )


def check_target(path: Path, name: str, target: TargetSettings, spec: ProviderSpec) -> Iterator[Finding]:
    """What is wrong with *target* of the model *name*; *spec* is its provider's with the provider's overrides."""
    if "*" not in name:
        for key, given in (("base", target.base), ("adapters", target.adapters)):
            if given:
                yield (
                    (*path, key),
                    True,
                    f"'{key}' belongs to models for many fine-tunes, named 'something{PATTERN_END}'",
                )
        if PLACEHOLDER in target.model:
            message = f"'{PLACEHOLDER}' stands for the part of '*' in a model's name, and '{name}' has none"
            yield (*path, "model"), False, message
        return
    if not target.base:
        yield path, True, "'base' is missing: what the provider calls the model under these fine-tunes"
    try:
        lora = spec.with_overrides(target.overrides).lora
    except ValidationError:
        return  # told of the overrides
    if lora is None:
        yield (
            (*path, "provider"),
            False,
            f"how {spec.name} is told which fine-tune is meant is not known; say it under overrides: "
            "{lora: {model: '{adapter}'}}, or with 'field' or 'ids'",
        )
    else:
        yield from _names(path, name, target, lora)


def _names(path: Path, name: str, target: TargetSettings, lora: LoraSpec) -> Iterator[Finding]:
    if lora.ids is not None and not target.adapters:
        yield path, True, "'adapters' is missing: this server numbers its fine-tunes; name them, as {acme: 0, zen: 1}"
    elif lora.ids is None and not target.adapters and PLACEHOLDER not in target.model:
        message = f"'model' has to hold '{PLACEHOLDER}', for the part that '*' stands for, or 'adapters' to name each"
        yield (*path, "model"), False, message
    for adapter, told in target.adapters.items():
        at = (*path, "adapters", adapter)
        if adapter_of(name, name.removesuffix("*") + adapter) is None:
            yield at, True, f"'{adapter}' cannot be part of a name: letters, digits and single . _ - between them"
        if (lora.ids is not None) != isinstance(told, int):
            yield at, False, "a number is expected" if lora.ids is not None else "a name is expected"


def is_name_of(name: str, models: dict[str, ModelSettings]) -> bool:
    """Whether *name* is one of the many that a pattern among *models* stands for."""
    return any(adapter_of(pattern, name) is not None for pattern in models if pattern.endswith(PATTERN_END))


def spec_of(provider: ProviderSettings, spec: ProviderSpec) -> ProviderSpec | None:
    """The facts with the provider's own overrides; None where those are wrong, which is told elsewhere."""
    try:
        return spec.with_overrides(provider.overrides)
    except ValidationError:
        return None
