"""Checks of providers that run a model on this machine, and of their targets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path as FilePath

from adapters.fine_tunes import adapter_of
from adapters.located_yaml import Path
from adapters.validation import did_you_mean, one_of
from gateway.config.model_settings import TargetSettings
from gateway.config.provider_settings import OF_BUNDLED_SERVER, ProviderSettings
from gateway.config.schema import PATTERN_END
from gateway.local_models import purpose_of, traits
from local_engine.errors import LocalEngineError, WrongPurposeError
from local_engine.launch import check_adapter
from local_engine.purpose import Purpose
from local_engine.registry import DEFAULT_MODEL, default_store, find_known, known_models

Finding = tuple[Path, bool, str]


def check_provider(path: Path, provider: ProviderSettings) -> Iterator[Finding]:
    """What is wrong with a provider of `type: local`."""
    if provider.command:
        yield from _command(path, provider)
        return
    if provider.model and provider.model_path:
        yield (*path, "model_path"), True, "either 'model' or 'model_path', not both"
        return
    if provider.model and find_known(provider.model) is None:
        names = [model.name for model in known_models()]
        hint = f"{did_you_mean(provider.model, names)}{one_of(names)}"
        yield (*path, "model"), False, f"'{provider.model}' is not in the store; for a file, use model_path.{hint}"
    if provider.chat_template is not None and not provider.chat_template.is_file():
        yield (*path, "chat_template"), False, f"there is no file {provider.chat_template}"
    if provider.flash_attention == "off" and provider.kv_type not in (None, "f32", "f16", "bf16"):
        yield (*path, "kv_type"), False, f"'{provider.kv_type}' takes flash attention, which is off"
    yield from _purposes(path, provider)
    yield from _adapters(path, provider)


def check_target(path: Path, name: str, target: TargetSettings, provider: ProviderSettings) -> Iterator[Finding]:
    """What is wrong with *target*, which is the local *provider*'s model, of the model *name*."""
    if target.model:
        yield (*path, "model"), True, "a local provider serves one model; name it at the provider"
    for key in ("base", "adapters"):
        if getattr(target, key):
            yield (*path, key), True, f"'{key}' does not apply to a local provider: its 'lora' names its adapters"
    if name.endswith(PATTERN_END):
        names = [one.name for one in provider.lora if one.name]
        if not names:
            message = f"'{target.provider}' has no adapters with names; give some: lora: [{{name: acme, path: FILE}}]"
            yield (*path, "provider"), False, message
        for adapter in names:
            if adapter_of(name, name.removesuffix("*") + adapter) is None:
                message = f"its adapter '{adapter}' cannot be part of a name: letters, digits and single . _ - between"
                yield (*path, "provider"), False, message


def _command(path: Path, provider: ProviderSettings) -> Iterator[Finding]:
    for key in OF_BUNDLED_SERVER:
        if key in provider.model_fields_set:
            yield (*path, key), True, f"'{key}' is for the bundled server; say it in the words of the 'command'"
    if not provider.command[0]:
        yield (*path, "command", 0), False, "the first word names the program"
    words = " ".join(provider.command)
    if "{socket}" in words and "{port}" in words:
        yield (*path, "command"), False, "it listens at one of {socket} and {port}, not both"
    if sys.platform == "win32":
        yield (*path, "command"), True, "'command' does not work on Windows; start it yourself and name its base_url"


def _purposes(path: Path, provider: ProviderSettings) -> Iterator[Finding]:
    try:
        purpose = purpose_of(provider)
    except WrongPurposeError as error:
        yield (*path, error.option) if error.option in provider.model_fields_set else path, True, str(error)
        return
    if provider.pooling is not None and not purpose.embeddings:
        yield (*path, "pooling"), True, "'pooling' is how embeddings are made, and this model makes none"
    known = traits(provider)
    if provider.context is not None and not known.generates and provider.context > (known.trained_context or 0):
        message = f"the model reads at most {known.trained_context} tokens, and cannot read more"
        yield (*path, "context"), False, message
    if provider.prompt_cache is not None and not purpose.chat:
        yield (*path, "prompt_cache"), True, f"'prompt_cache' is for generation; this model {_does(purpose)}"
    if provider.chat_template is not None and not purpose.chat:
        yield (*path, "chat_template"), True, f"'chat_template' is for chats; this model {_does(purpose)}"


def _model_file(provider: ProviderSettings) -> FilePath:
    """Of a model that still has to be fetched, where it is going to be."""
    if provider.model_path is not None:
        return provider.model_path
    known = find_known(provider.model or DEFAULT_MODEL)
    return default_store() / (known.file_name if known is not None else "")


def _does(purpose: Purpose) -> str:
    return "ranks" if purpose.rerank else "makes embeddings"


def _adapters(path: Path, provider: ProviderSettings) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, adapter in enumerate(provider.lora):
        place: Path = (*path, "lora", index)
        if adapter.name and adapter.name in seen:
            yield (*place, "name"), False, f"'{adapter.name}' is the name of another adapter already"
        seen.add(adapter.name)
        try:
            check_adapter(adapter.path, _model_file(provider))
        except LocalEngineError as error:
            yield (*place, "path"), False, str(error)
