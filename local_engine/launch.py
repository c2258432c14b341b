"""What it takes to start an engine's process: the files looked at, the options written out."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from local_engine.errors import LocalEngineError, ModelDamagedError, ModelMissingError
from local_engine.gguf import MAGIC, UnreadableGgufError, read_header
from local_engine.memory import Load
from local_engine.options import ChildOptions, EngineConfig, default_threads
from local_engine.probe import Address
from local_engine.purpose import Purpose, decide, traits_of
from local_engine.registry import default_store, locate
from local_engine.weights import check_weights


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start."""

    module: str
    """What of this package it runs."""
    first_line: str
    """What it is told on its standard input."""
    purpose: Purpose
    load: Load | None = None
    """What its memory depends on, where that is known."""


def prepare(config: EngineConfig, name: str, address: Address) -> Launch:
    """How to start the engine of *config* at *address*; a `LocalEngineError` says why that would come to nothing.

    Reads files, so it belongs into a thread.
    """
    if config.command:
        return _prepare_command(config, address)
    path, known = locate(config.model, config.store or default_store())
    check_weights(path, known)
    purpose = decide(traits_of(path), chat=config.chat, embeddings=config.embeddings, rerank=config.rerank)
    for adapter in config.adapters:
        check_adapter(adapter.path, path)
    threads = config.threads or default_threads()
    options = ChildOptions(
        model_path=str(path),
        name=name,
        context=config.context,
        slots=config.slots,
        threads=threads,
        batch_threads=config.batch_threads or threads,
        batch=config.batch_of(purpose),
        flash_attention=config.flash_attention,
        kv_type=config.kv_type,
        chat_template=_template(config),
        cache_ram_mib=config.cache_ram_mib,
        pools=purpose.embeddings or purpose.rerank,
        pooling=_pooling(config, path, purpose),
        # One that is chosen by name is loaded, and applied to those requests alone that choose it.
        adapters=tuple((str(one.path), 0.0 if one.name else one.scale) for one in config.adapters),
        host=address.socket_path or "127.0.0.1",
        port=address.port,
        api_key=address.api_key,
        parent_pid=os.getpid(),
    )
    return Launch("local_engine.child", options.to_json(), purpose, config.load(path, purpose))


def check_adapter(path: Path, model: Path) -> None:
    """Raise `ModelMissingError` or `ModelDamagedError` when *path* is no adapter for *model*."""
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise ModelDamagedError(f"{path} is not a GGUF file")
        header = read_header(path)
    except FileNotFoundError as error:
        raise ModelMissingError(f"there is no adapter {path}") from error
    except (OSError, UnreadableGgufError) as error:
        raise ModelDamagedError(f"the adapter {path} cannot be read: {error}") from error
    if header.text("general.type") != "adapter" or header.text("adapter.type") != "lora":
        raise ModelDamagedError(f"{path} is not a LoRA adapter")
    try:
        base = read_header(model).architecture
    except (OSError, UnreadableGgufError):
        return  # the engine will say what is wrong with the model
    if header.architecture != base:
        raise ModelDamagedError(f"{path} is an adapter for models of the kind {header.architecture!r}, not {base!r}")


def template_has_tools(config: EngineConfig) -> bool | None:
    """Whether the chat template speaks of tools, as far as that can be told before the model was ever loaded.

    Then the engine says what its template makes of them, and that counts.
    """
    try:
        if config.command:
            return None
        template = _template(config)
        if not template:
            path, _ = locate(config.model, config.store or default_store())
            template = read_header(path).text("tokenizer.chat_template")
    except (LocalEngineError, OSError, UnreadableGgufError):
        return None
    return re.search(r"\btools\b", template) is not None


def _template(config: EngineConfig) -> str:
    if config.chat_template is None:
        return ""
    try:
        return config.chat_template.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ModelMissingError(f"there is no chat template {config.chat_template}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ModelDamagedError(f"the chat template {config.chat_template} cannot be read: {error}") from error


def _pooling(config: EngineConfig, path: Path, purpose: Purpose) -> str | None:
    if purpose.rerank:
        return "rank"
    if config.pooling is None and purpose.embeddings and traits_of(path).pooling is None:
        # Models made for generation name none, and without one llama.cpp refuses /v1/embeddings.
        return "mean"
    return config.pooling


def _prepare_command(config: EngineConfig, address: Address) -> Launch:
    words = [
        word.replace("{socket}", address.socket_path or "").replace("{port}", str(address.port))
        for word in config.command
    ]
    if words == list(config.command):
        words += ["--host", address.socket_path or "127.0.0.1"]  # as llama-server takes it
    orders = {"command": words, "socket": address.socket_path, "parent_pid": os.getpid()}
    purpose = Purpose(
        chat=not (config.embeddings or config.rerank) if config.chat is None else config.chat,
        embeddings=bool(config.embeddings),
        rerank=bool(config.rerank),
    )
    return Launch("local_engine.keeper", json.dumps(orders), purpose)
