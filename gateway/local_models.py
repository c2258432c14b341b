"""What a local provider's settings and its model's file say together: name, window, purposes, adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from adapters.fine_tunes import FineTunes
from adapters.types import Operation
from gateway.config.provider_settings import LOCAL_CONTEXT, ProviderSettings
from gateway.config.schema import PATTERN_END
from gateway.config.zero import LOCAL_MODEL
from local_engine.errors import WrongPurposeError
from local_engine.purpose import Purpose, Traits, decide, traits_of

_GENERATION: Final = frozenset({Operation.CHAT, Operation.COMPLETIONS})


def local_model_name(provider: ProviderSettings) -> str:
    """The engine serves one model and ignores the name it is asked for; people read it in headers and logs."""
    if provider.model_path:
        return provider.model_path.stem
    return provider.model or (Path(provider.command[0]).stem if provider.command else LOCAL_MODEL)


def traits(provider: ProviderSettings) -> Traits:
    """What the model's file says; of the models in the store all generate text."""
    try:
        return traits_of(provider.model_path) if provider.model_path else Traits()
    except OSError:
        return Traits()  # a file that is not there is told elsewhere


def context_of(provider: ProviderSettings) -> int:
    """Tokens a request may use. Unless the file asks for more, not more than the model was trained for."""
    return provider.context or min(LOCAL_CONTEXT, traits(provider).trained_context or LOCAL_CONTEXT)


def stamps_of_files(provider: ProviderSettings) -> tuple[tuple[str, int, int], ...]:
    """Path, time of the last change and size of each file of its engine: with another version of one it is another."""
    files = (provider.model_path, provider.chat_template, *(one.path for one in provider.lora))
    return tuple(_stamp(path) for path in files if path is not None)


def purpose_of(provider: ProviderSettings) -> Purpose:
    """What its engine is started for; `WrongPurposeError` names the setting that cannot be."""
    if provider.command:
        made = bool(provider.embeddings or provider.rerank)
        chat = not made if provider.chat is None else provider.chat
        return Purpose(chat, bool(provider.embeddings), bool(provider.rerank))
    return decide(traits(provider), chat=provider.chat, embeddings=provider.embeddings, rerank=provider.rerank)


def operations_of(provider: ProviderSettings) -> frozenset[Operation]:
    """The operations of the data plane that its engine answers."""
    try:
        purpose = purpose_of(provider)
    except WrongPurposeError:
        return frozenset()  # the file was replaced by one of another kind; the engine says so
    operations = _GENERATION if purpose.chat else frozenset()
    return operations | {Operation.EMBEDDINGS} if purpose.embeddings else operations


def fine_tunes_of(provider: ProviderSettings, pattern: str) -> FineTunes | None:
    """The adapters with names, where *pattern* is a name for many models and the provider a local one.

    llama.cpp numbers its adapters in the order in which it loads them, and takes those that a request lists for all
    that it wants; so the ones without a name are listed each time.
    """
    if not provider.local or not pattern.endswith(PATTERN_END):
        return None
    adapters = list(enumerate(provider.lora))
    return FineTunes(
        pattern,
        local_model_name(provider),
        known={one.name: number for number, one in adapters if one.name},
        always=tuple((number, one.scale) for number, one in adapters if not one.name),
        scales={number: one.scale for number, one in adapters},
    )


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        state = path.stat()
    except OSError:
        return str(path), 0, 0  # whoever reads it says that it is not there
    return str(path), state.st_mtime_ns, state.st_size
