"""The keys of local models: what is wrong with them, and where in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.provider_settings import ProviderSettings
from gateway.engines import owned_engines
from gateway.local_models import operations_of
from gateway.settings import ConfigError, load_settings
from local_engine.options import Adapter
from local_engine.room import Room
from tests.fakes.gguf_files import write_decoder, write_encoder, write_lora


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the configuration is, with a model of each kind and an adapter."""
    write_decoder(tmp_path / "d.gguf")
    write_encoder(tmp_path / "e.gguf")
    write_encoder(tmp_path / "r.gguf", ranks=True)
    write_lora(tmp_path / "l.gguf")
    (tmp_path / "t.jinja").write_text("{{ messages }}")
    return tmp_path


def write(folder: Path, provider: str, model: str = "m", more: str = "") -> Path:
    path = folder / "c.yaml"
    text = f"providers:\n  p: {{type: local, {provider}}}\nmodels:\n  {model}: {{targets: [{{provider: p}}]}}\n{more}"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("provider", "at", "path", "message"),
    [
        ("model_path: d.gguf, kv_type: q9_0", "q9_0", "kv_type", "'q9_0' is not"),
        ("model_path: d.gguf, flash_attention: maybe", "maybe", "flash_attention", "'maybe' is not"),
        ("model_path: d.gguf, slots: 0", "0", "slots", "at least 1"),
        ("model_path: d.gguf, batch: big", "big", "batch", "a whole number"),
        ("model_path: d.gguf, idle_unload: 5", "5", "idle_unload", "'5' is not a duration. Did you mean '5s'?"),
        ("model_path: d.gguf, prompt_cache: much", "much", "prompt_cache", "'much' is not a size"),
        ("model_path: d.gguf, memory_check: maybe", "maybe", "memory_check", "'maybe' is not"),
        (
            "model_path: d.gguf, kv_type: q8_0, flash_attention: off",
            "q8_0",
            "kv_type",
            "takes flash attention, which is off",
        ),
        ("model_path: d.gguf, chat_template: gone", "gone", "chat_template", "there is no file"),
        ("model_path: d.gguf, chat: false", "p:", "", "nothing is left for the model to do"),
        ("model_path: d.gguf, rerank: true", "rerank:", "rerank", "no head that ranks"),
        ("model_path: e.gguf, chat: true", "chat:", "chat", "only reads"),
        ("model_path: e.gguf, context: 513", "513", "context", "the model reads at most 512 tokens"),
        ("model_path: e.gguf, prompt_cache: 1MiB", "prompt_cache:", "prompt_cache", "this model makes embeddings"),
        ("model_path: r.gguf, chat_template: t.jinja", "chat_template:", "chat_template", "this model ranks"),
        ("model_path: d.gguf, pooling: mean", "pooling:", "pooling", "this model makes none"),
        ("model_path: d.gguf, pooling: max", "max", "pooling", "'max' is not"),
        ("model_path: d.gguf, lora: [{path: gone.gguf}]", "gone.gguf", "lora[0].path", "there is no adapter"),
        ("model_path: d.gguf, lora: [{path: t.jinja}]", "t.jinja", "lora[0].path", "is not a GGUF file"),
        ("model_path: d.gguf, lora: [{path: d.gguf}]", "d.gguf", "lora[0].path", "is not a LoRA adapter"),
        ("model_path: e.gguf, lora: [{path: l.gguf}]", "l.gguf", "lora[0].path", "the kind 'llama', not 'bert'"),
        ("model_path: d.gguf, lora: [{path: l.gguf, scale: much}]", "much", "lora[0].scale", "a number"),
        (
            "model_path: d.gguf, lora: [{path: l.gguf, name: a}, {path: l.gguf, name: a}]",
            "a",
            "lora[1].name",
            "'a' is the name of another",
        ),
        ("command: llama-server", "llama-server", "command", "a list is expected"),
        ("command: [x], threads: 2", "threads:", "threads", "say it in the words of the 'command'"),
        ("command: [x], model_path: d.gguf", "model_path:", "model_path", "say it in the words"),
        ("command: ['', x]", "''", "command[0]", "the first word names the program"),
        ("command: [x, '{socket}', '{port}']", "[x", "command", "one of {socket} and {port}"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(folder: Path, provider: str, at: str, path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(folder, provider), environ={})

    (problem,) = caught.value.problems
    assert problem.path == f"providers.p{'.' + path if path else ''}"
    assert message in problem.message
    line = (folder / "c.yaml").read_text().splitlines()[problem.line - 1]
    assert line[problem.column - 1 :].startswith(at)


def test_the_number_of_loaded_models_is_at_least_one(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.yaml:5:28  local_engine\.max_loaded"):
        load_settings(write(folder, "model_path: d.gguf", more="local_engine: {max_loaded: 0}\n"), environ={})


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        ("model_path: d.gguf", "has no adapters with names"),
        ("model_path: d.gguf, lora: [{path: l.gguf}]", "has no adapters with names"),
        ("model_path: d.gguf, lora: [{path: l.gguf, name: a/b}]", "'a/b' cannot be part of a name"),
    ],
)
def test_names_for_many_take_adapters_with_names(folder: Path, provider: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(folder, provider, "tuned/*"), environ={})

    assert [message in problem.message for problem in caught.value.problems] == [True]


def test_every_key_reaches_the_engine_with_paths_from_the_files_folder(folder: Path) -> None:
    provider = (
        "model_path: d.gguf, context: 128, slots: 3, threads: 2, batch_threads: 4, batch: 32, flash_attention: on, "
        "kv_type: q8_0, prompt_cache: 8MiB, chat_template: t.jinja, lora: [{path: l.gguf, scale: 0.5, name: a}], "
        "idle_unload: 10m, memory_check: warn, embeddings: true, pooling: last, chat: true"
    )
    settings = load_settings(write(folder, provider), environ={})

    config = owned_engines(settings, Room())["p"].config

    assert config.model == str(folder / "d.gguf")
    assert config.adapters == (Adapter(folder / "l.gguf", 0.5, "a"),)
    assert config.chat_template == folder / "t.jinja"
    assert (config.context, config.slots, config.threads, config.batch_threads, config.batch) == (128, 3, 2, 4, 32)
    assert (config.flash_attention, config.kv_type, config.cache_ram_mib, config.pooling) == ("on", "q8_0", 8, "last")
    assert (config.idle_unload_seconds, config.memory_check.value) == (600, "warn")
    assert (config.chat, config.embeddings, config.rerank) == (True, True, None)


@pytest.mark.parametrize(
    ("provider", "operations"),
    [
        ("model_path: d.gguf", {"chat", "completions"}),
        ("model_path: d.gguf, embeddings: true", {"chat", "completions", "embeddings"}),
        ("model_path: e.gguf", {"embeddings"}),
        ("model_path: r.gguf", set()),
        ("command: [x]", {"chat", "completions"}),
        ("command: [x], embeddings: true", {"embeddings"}),
        ("command: [x], embeddings: true, chat: true", {"chat", "completions", "embeddings"}),
    ],
)
def test_a_model_offers_what_it_is_started_for(folder: Path, provider: str, operations: set[str]) -> None:
    settings = load_settings(write(folder, provider), environ={})

    found: ProviderSettings = settings.providers["p"]
    assert {operation.name.lower() for operation in operations_of(found)} == operations


def test_the_window_is_no_larger_than_what_the_model_was_trained_for(folder: Path) -> None:
    settings = load_settings(write(folder, "model_path: d.gguf"), environ={})

    assert owned_engines(settings, Room())["p"].config.context == 512
