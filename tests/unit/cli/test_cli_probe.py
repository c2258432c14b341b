"""`gateway probe`: what it says before, what it prints and writes, how it ends; over real sockets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gateway.catalog import Catalog
from gateway.cli.main import command_app
from gateway.settings import load_settings
from tests.fakes.simulated import Simulated, simulated

MODEL = "openai/gpt-oss-20b"


@contextmanager
def playing(provider: str, overrides: Mapping[str, Any] | None = None, **options: Any) -> Iterator[Simulated]:
    """A simulated provider in a thread of its own, as the command has a loop of its own."""
    begun, over = threading.Event(), asyncio.Event()
    held: list[tuple[Simulated, asyncio.AbstractEventLoop]] = []

    async def run() -> None:
        async with simulated(provider, overrides, **options) as running:
            held.append((running, asyncio.get_running_loop()))
            begun.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert begun.wait(10)
    running, loop = held[0]
    try:
        yield running
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)


def configured(folder: Path, settings: Mapping[str, Any], model: str = MODEL, **more: Any) -> Path:
    path = folder / "config.yaml"
    target = {"provider": "p", "model": model, **more}
    path.write_text(json.dumps({"version": 1, "providers": {"p": settings}, "models": {"m": {"targets": [target]}}}))
    return path


def probe(path: Path, *arguments: str) -> Any:
    done = CliRunner().invoke(command_app("probe"), [*arguments, "-c", str(path)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_a_provider_that_holds_ends_with_0(home: Path) -> None:
    with playing("groq") as groq:
        done = probe(configured(home, groq.settings), "m", "--yes")

    assert done.exit_code == 0
    assert "params.n" in done.stdout
    assert "differs" not in done.stdout


def test_drift_ends_with_1_and_is_written_as_a_block_that_mends_the_configuration(home: Path) -> None:
    block = home / "overrides.yaml"
    with playing("groq", {"params": {"n": {"support": "native"}, "stop": {"max_items": 2}}}) as groq:
        first = probe(configured(home, groq.settings), "p", "--yes", "--write", "-o", str(block))
        overrides = yaml.safe_load(block.read_text())["overrides"]
        second = probe(configured(home, groq.settings, overrides=overrides), "p", "--yes")

    assert first.exit_code == 1
    assert overrides == {
        "params": {
            "n": {"support": "native"},
            "stop": {"support": "limited", "max_items": 2, "patch": "client_side_stop"},
        }
    }
    assert second.exit_code == 0, second.stdout


def test_an_override_reaches_the_targets_facts(home: Path) -> None:
    with playing("together", {"params": {"user": {"support": "native"}}}) as together:
        path = configured(home, together.settings, together.model)
        done = probe(path, "p", "--yes", "--write", "--only", "params.user")
    block = yaml.safe_load(done.stdout[done.stdout.index("# What") :])
    path = configured(home, {**together.settings, **block}, together.model)

    model = Catalog.build(load_settings(path, environ={})).models["m"]

    assert model.targets[0].spec.params["user"].support == "native"


def test_json_tells_every_finding(home: Path) -> None:
    with playing("groq") as groq:
        done = probe(configured(home, groq.settings), "m", "--yes", "--json", "--only", "streaming")

    report = json.loads(done.stdout)
    assert report["target"] == f"p/{MODEL}"
    assert {"streaming.usage", "streaming.done_marker"} <= {one["fact"] for one in report["findings"]}
    assert {one["verdict"] for one in report["findings"]} == {"holds"}


def test_only_what_a_fact_needs_is_asked(home: Path) -> None:
    with playing("groq") as groq:
        done = probe(configured(home, groq.settings), "m", "--yes", "--only", "params.seed")

    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:4] if line] == [
        "params.seed",
        "params.seed.min",
        "params.seed.max",
    ]
    assert len(groq.requests) < 10


def test_it_says_how_much_it_sends_and_sends_nothing_unasked(home: Path) -> None:
    with playing("groq") as groq:
        done = probe(configured(home, groq.settings), "m")

    assert done.exit_code == 2
    assert "requests" in done.stderr
    assert "USD" in done.stderr
    assert groq.requests == []


def test_what_it_announces_is_what_it_sends(home: Path) -> None:
    with playing("cerebras") as cerebras:
        done = probe(configured(home, cerebras.settings, cerebras.model), "m", "--yes", "--json")
        sent = len(cerebras.requests)

    # The list of models is asked for without a body.
    assert json.loads(done.stdout)["requests"] in (sent, sent + 1, sent + 2)


def test_the_key_stands_nowhere(home: Path) -> None:
    with playing("groq") as groq:
        done = probe(configured(home, groq.settings), "m", "--yes", "--json")

    assert groq.key not in done.stdout + done.stderr


def test_a_refused_key_ends_with_4(home: Path) -> None:
    with playing("groq") as groq:
        done = probe(configured(home, {**groq.settings, "api_key": "gsk_wrong"}), "m", "--yes")

    assert done.exit_code == 4
    assert "gsk_wrong" not in done.stderr


def test_a_server_that_is_not_there_ends_with_4(home: Path, deaf_port: int) -> None:
    settings = {"type": "vllm", "base_url": f"http://127.0.0.1:{deaf_port}/v1", "connect_timeout": "100ms"}

    assert probe(configured(home, settings, "m"), "m", "--yes").exit_code == 4


def test_an_unknown_name_is_told_with_those_there_are(home: Path) -> None:
    done = probe(configured(home, {"type": "groq", "api_key": "k"}), "nobody", "--yes")

    assert done.exit_code == 2
    assert f"p/{MODEL}" in done.stderr


def test_the_bundled_engine_is_not_probed(home: Path) -> None:
    done = probe(configured(home, {"type": "local"}, ""), "m", "--yes")

    assert done.exit_code == 2


def test_a_fact_nobody_knows_is_an_error(home: Path) -> None:
    with playing("groq") as groq:
        done = probe(configured(home, groq.settings), "m", "--yes", "--only", "params.sede")

    assert done.exit_code == 2


@pytest.mark.parametrize("provider", ["together", "fireworks"])
def test_other_hosted_providers_hold_too(provider: str, home: Path) -> None:
    with playing(provider) as running:
        done = probe(configured(home, running.settings, running.model), "m", "--yes")

    assert done.exit_code == 0, done.stdout
