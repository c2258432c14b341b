"""`gateway explain --count`: prompts counted by the model's own tokenizer, in place of a rule of thumb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from tests.fakes.gguf_files import write_decoder, write_encoder

TEXT = "日本語" * 10  # 90 bytes, and as many tokens of the tiny model


@pytest.fixture
def config(tmp_path: Path) -> Path:
    provider = {"type": "local", "model_path": str(write_decoder(tmp_path / "d.gguf")), "context": 256}
    vectors = {"type": "local", "model_path": str(write_encoder(tmp_path / "e.gguf"))}
    target = {"provider": "local", "price": {"input": 1, "output": 1}}
    other = {"provider": "far", "model": "m", "context_window": 4096}
    content = {
        "providers": {
            "local": provider,
            "vectors": vectors,
            "far": {"type": "vllm", "base_url": "http://127.0.0.1:9/v1"},
        },
        "models": {"chat": {"targets": [target, other]}, "embed": {"targets": [{"provider": "vectors"}]}},
    }
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(content))
    return path


def targets(config: Path, model: str, body: dict[str, Any], *arguments: str) -> dict[str, dict[str, Any]]:
    """What is told of each target, by its provider."""
    params = config.with_name("p.json")
    params.write_text(json.dumps(body))
    command = ["explain", model, "-c", str(config), "--params", str(params), "--json", *arguments]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return {one["target"].partition("/")[0]: one for one in json.loads(done.stdout)["targets"]}


def test_local_targets_are_counted_and_others_estimated(config: Path) -> None:
    body = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 20}
    estimated, counted = targets(config, "chat", body), targets(config, "chat", body, "--count")

    # "user: ", the text, a line break and "assistant:", with a mark in front and what the tokenizer makes of spaces.
    assert counted["local"]["prompt_tokens"] == 113
    assert counted["local"]["prompt_counted"] is True
    assert counted["local"]["context"] == "fits"
    assert estimated["local"]["prompt_counted"] is False
    assert estimated["local"]["prompt_tokens"] != 113
    assert counted["far"] == estimated["far"]


@pytest.mark.parametrize(("length", "fit"), [(200, "fits"), (215, "doubtful"), (300, "too_long")])
def test_whether_it_fits_is_known(config: Path, length: int, fit: str) -> None:
    body = {"messages": [{"role": "user", "content": "x" * length}], "max_tokens": 30}

    assert targets(config, "chat", body, "--count")["local"]["context"] == fit


@pytest.mark.parametrize(
    ("model", "body", "tokens"),
    [
        ("chat", {"prompt": "abc"}, 7),
        ("embed", {"input": "a b c"}, 5),
        ("embed", {"input": ["a", "b c"]}, 3 + 4),
        ("embed", {"input": [[5, 6], [7]]}, 3),
    ],
)
def test_texts_and_tokens_are_counted_too(config: Path, model: str, body: dict[str, Any], tokens: int) -> None:
    told = targets(config, model, body, "--count")

    assert told["local" if model == "chat" else "vectors"]["prompt_tokens"] == tokens


def test_an_engine_that_does_not_start_leaves_the_estimate(config: Path) -> None:
    content = json.loads(config.read_text())
    path = Path(content["providers"]["local"]["model_path"])
    path.write_bytes(path.read_bytes()[:20_000])
    body = {"messages": [{"role": "user", "content": TEXT}]}

    assert targets(config, "chat", body, "--count")["local"]["prompt_counted"] is False
