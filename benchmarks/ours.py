"""This gateway as a contestant: plain, with everything on, and with several workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.contestant import Plan, Route, Via
from benchmarks.workshop import Upstreams
from gateway.__about__ import __version__

ROOT: Final = Path(__file__).resolve().parents[1]
PLAIN: Final = "switchgear"
FULL: Final = "switchgear, all on"
WORKERS: Final = "switchgear, {} workers"

_UPSTREAM_MODELS: Final = {Via.REASONING: "reasoning", Via.BARE_CALLS: "bare-calls"}
"""The mock plays what these models are named after; any other name gets well-formed answers."""


def plain(folder: Path, port: int, upstreams: Upstreams) -> Plan:
    """A key, a model with two targets, a row for each request, metrics: what an installation has without asking."""
    own = folder / "plain"
    return _plan(PLAIN, own, port, plain_config(own, upstreams), list(Via))


def full(folder: Path, port: int, upstreams: Upstreams) -> Plan:
    """The same with all that a request can be made to pass in this version; its key is limited too."""
    own = folder / "full"
    ways = [Via.PLAIN, Via.TLS]
    limits = ("--models", "*", "--expires", "9d")
    return _plan(FULL, own, port, full_config(own, upstreams), ways, model="team-a-{}", keyed=limits)


def workers(folder: Path, port: int, upstreams: Upstreams, count: int) -> Plan:
    """The plain one as *count* processes."""
    own = folder / "workers"
    config = plain_config(own, upstreams)
    config["server"]["workers"] = count
    return _plan(
        WORKERS.format(count),
        own,
        port,
        config,
        [Via.PLAIN],
        only=frozenset({"request", "event", "streams 500", "idle"}),
    )


def plain_config(folder: Path, upstreams: Upstreams) -> dict[str, Any]:
    """The configuration; the database lies in *folder*."""
    address = f"http://127.0.0.1:{upstreams.port}/v1"
    tls: dict[str, Any] = {"base_url": f"https://127.0.0.1:{upstreams.tls_port}/v1", "ca_file": str(upstreams.ca_file)}
    reached: dict[str, dict[str, Any]] = {
        "one": {"base_url": address},
        "two": {"base_url": address},
        "tls-one": tls,
        "tls-two": dict(tls),
    }
    models = {}
    for via in Via:
        ways = ("tls-one", "tls-two") if via is Via.TLS else ("one", "two")
        upstream_model = _UPSTREAM_MODELS.get(via, "mock-70b")
        models[via.value] = {"targets": [{"provider": way, "model": upstream_model} for way in ways]}
    return {
        "version": 1,
        "server": {"workers": 1},
        "storage": {"database_url": f"sqlite+aiosqlite:///{folder / 'gateway.db'}"},
        "providers": {
            name: {"type": "openai_compatible", "api_key": "sk-upstream", **how} for name, how in reached.items()
        },
        "models": models,
        "telemetry": {"metrics": True, "log_format": "json", "log_level": "info"},
    }


def full_config(folder: Path, upstreams: Upstreams) -> dict[str, Any]:
    """The same with prices, limits, clocks, several upstream keys, names by pattern, and the model renamed back."""
    config = plain_config(folder, upstreams)
    for provider in config["providers"].values():
        del provider["api_key"]
        provider |= {"api_keys": ["sk-one", "sk-two"], "max_concurrency": 16_384}
    for model in config["models"].values():
        model |= {"timeouts": {"total": "600s", "first_event": "30s", "stall": "30s"}, "retries": {"attempts": 2}}
        for target in model["targets"]:
            target |= {
                "price": {"input": 0.15, "output": 0.6, "cached_input": 0.075},
                "context_window": 131_072,
                "max_output_tokens": 32_768,
            }
    config["aliases"] = {f"team-*-{via}": via.value for via in Via}
    config["response_model"] = "alias"
    return config


def _plan(
    name: str,
    folder: Path,
    port: int,
    config: dict[str, Any],
    ways: list[Via],
    *,
    model: str = "{}",
    keyed: tuple[str, ...] = (),
    only: frozenset[str] | None = None,
) -> Plan:
    folder.mkdir()
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    env = {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    return Plan(
        name=name,
        command=[*_gateway("serve"), "-c", str(path), "--port", str(port)],
        routes={via: Route(model.format(via.value)) for via in ways},
        port=port,
        key=_create_key(path, env, keyed),
        env=env,
        version=__version__,
        only=only,
    )


def _create_key(config: Path, env: dict[str, str], options: tuple[str, ...]) -> str:
    command = [*_gateway("keys", "create"), "-c", str(config), "--name", "benchmark", "--json", *options]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **env}, cwd=config.parent
    )
    secret: str = json.loads(ran.stdout)["secret"]
    return secret


def _gateway(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "gateway", *arguments]
