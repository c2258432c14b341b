"""`gateway simulate` tells how to use what it plays, and says what is wrong before it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from typer.testing import CliRunner

from adapters.registry import load_spec
from adapters.simulator.engine import Simulator
from gateway.catalog import Catalog
from gateway.cli.main import command_app
from gateway.cli.simulate import describe
from gateway.settings import load_settings


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command_app("simulate"), list(arguments))


@pytest.mark.parametrize("provider", ["groq", "vllm", "local"])
def test_the_printed_configuration_leads_there(provider: str, tmp_path: Path) -> None:
    simulator = Simulator(load_spec(provider))
    lines = describe(simulator, "http://127.0.0.1:9300")
    start, end = lines.index("providers:"), lines.index("", lines.index("providers:"))
    path = tmp_path / "config.yaml"
    path.write_text("\n".join(["version: 1", *lines[start:end]]))

    model = Catalog.build(load_settings(path, environ={})).resolve("rehearsal")

    assert f"Base URL: http://127.0.0.1:9300{simulator.base_path}" in lines
    assert yaml.safe_load(path.read_text())["providers"][provider].get("api_key") == simulator.key
    assert model is not None
    assert [target.model for target in model.targets] == [simulator.models.names()[0]]


def test_it_answers_until_it_is_stopped() -> None:
    command = [sys.executable, "-m", "gateway", "simulate", "groq", "--port", "0", "--key", "k"]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("Base URL: "))
            base_url = line.removeprefix("Base URL: ").strip()
            body = {"model": "openai/gpt-oss-20b", "messages": [{"role": "user", "content": "Say exactly: yes"}]}
            answer = httpx2.post(f"{base_url}/chat/completions", json=body, headers={"Authorization": "Bearer k"})
            process.send_signal(signal.SIGINT)
            code = process.wait(10)
        finally:
            process.kill()

    assert answer.json()["choices"][0]["message"]["content"] == "yes"
    assert code in (0, 130)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["grok"], 2, "Did you mean 'groq'"),
        (["groq", "--fault", "hnag"], 2, "Did you mean 'hang'"),
        (["groq", "--host", "203.0.113.1"], 1, "no address"),
        (["audio_cpp"], 1, "only these are simulated"),
    ],
)
def test_what_is_wrong_is_said_at_once(arguments: list[str], code: int, words: str) -> None:
    result = run(*arguments)

    assert result.exit_code == code
    assert words in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("params: {n: {support: natve}}", "params.n.support"),
        ("parms: {}", "Did you mean 'params'"),
        ("[]", "a mapping"),
        ("a: [", "overrides.yaml"),
    ],
)
def test_changed_facts_have_to_be_facts(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "overrides.yaml"
    path.write_text(text)

    result = run("groq", "--override", str(path))

    assert result.exit_code == 3
    assert words in result.stderr.replace("\n", " ")


def test_a_missing_file_of_changed_facts_is_told(tmp_path: Path) -> None:
    result = run("groq", "--override", str(tmp_path / "none.yaml"))

    assert result.exit_code == 2
    assert "No such file" in result.stderr
