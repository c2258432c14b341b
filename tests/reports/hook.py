"""Runs this gateway under suites that speak in neutral setups: cases from the field and the failure drill.

The suite puts the folder of ``gateways.base`` on the import path, says what its upstreams and models are, and asks for
a command to start. What this version cannot express is named by `Hook.cannot`, never quietly left out.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from gateways.base import Base

ROOT = Path(__file__).resolve().parents[2]
TYPES = {
    "groq": "groq",
    "cerebras": "cerebras",
    "together": "together",
    "fireworks": "fireworks",
    "vllm": "vllm",
    "llamacpp": "llama_cpp_server",
}
"""Provider names of the setups to our types; everything else speaks plain OpenAI."""

LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
MESSAGE_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "function_call")


def _without_fields(names: list[str]) -> dict[str, Any]:
    """A server that refuses members of messages: those named, and whatever OpenAI's messages do not have."""
    if names == ["name"]:
        return {"messages": {"name": {"support": "rejected", "patch": "strip"}}}
    kept = [name for name in MESSAGE_FIELDS if name not in names]
    unnamed = {"name": {"support": "rejected", "patch": "strip"}} if "name" in names else {}
    return {
        "transport": {"unknown_body_fields": {"nested": True}},
        "messages": {"fields": {"message": kept}, **unnamed},
    }


QUIRKS: dict[str, Any] = {
    "max_tokens_field": lambda field: {"params": {LIMITS[field]: {"support": "renamed", "to": field}}},
    "drop_message_fields": _without_fields,
    "string_content": lambda wanted: {"messages": {"content_as_string": bool(wanted)}},
    "tool_call_id": lambda form: {"messages": {"tool_call_ids": "nine_alphanumeric"}} if form == "alnum9" else None,
}
"""What an operator declares about an upstream, as ``overrides``; a quirk that is not here cannot be declared yet."""


class Hook(Base):  # type: ignore[misc]
    """One process for all cases that agree on the number of workers."""

    ready_path = "/health/ready"
    ready_seconds = 60

    def cannot(self, case: dict[str, Any]) -> str | None:
        """The reason why a case cannot be run with this version, or None."""
        setup = case["setup"]
        for key in setup.get("keys", []):
            if key.get("budget_usd") is not None:
                return "not built yet: budgets"
            if key.get("rpm") is not None or key.get("tpm") is not None:
                return "not built yet: rate limits of keys"
        for path in _paths(case):
            if path.startswith(("/v1/responses", "/v1/messages")):
                return f"not built yet: {path}"
        for model in setup.get("models", []):
            if model.get("strategy", "weighted") not in ("order", "weighted"):
                return f"not built yet: strategy {model['strategy']}"
            if model.get("fallback_models"):
                return "not built yet: falling back to another model"
        for upstream in setup["upstreams"].values():
            for name, value in (upstream.get("quirks") or {}).items():
                if name not in QUIRKS or QUIRKS[name](value) is None:
                    return f"not built yet: no setting for the quirk {name}"
        return None

    def group(self, case: dict[str, Any]) -> str:
        return f"workers={case['setup'].get('workers', 1)}"

    def configure(self, key: str, cases: list[dict[str, Any]], url: Any, upstream_key: Any) -> tuple[list[str], Any]:
        """Write the configuration and the keys; return the command and its environment."""
        self.database = self.args.workdir / f"gateway-{self.port}.db"
        config = self.args.workdir / f"gateway-{self.port}.yaml"
        config.write_text(yaml.safe_dump(self._config(key, cases, url, upstream_key), sort_keys=False))
        self._create_key(config, "client", self.KEY, None)
        for case in cases:
            for wanted in case["setup"].get("keys", []):
                models = wanted.get("models")
                public = None if models is None else [self.public_name(case, m) for m in models]
                self._create_key(config, f"{case['cid']}-{wanted['name']}", self.named_key(case, wanted), public)
        return [*_gateway(), "serve", "-c", str(config), "--port", str(self.port)], _environment()

    def _config(self, key: str, cases: list[dict[str, Any]], url: Any, upstream_key: Any) -> dict[str, Any]:
        providers: dict[str, Any] = {}
        models: dict[str, Any] = {}
        aliases: dict[str, str] = {}
        for case in cases:
            setup = case["setup"]
            for name, upstream in setup["upstreams"].items():
                providers[f"{case['cid']}-{name}"] = {
                    "type": TYPES.get(upstream["provider"], "openai_compatible"),
                    "base_url": url(case["cid"], name),
                    "api_key": upstream_key(case["cid"], name),
                }
            for model in setup.get("models", []):
                public = self.public_name(case, model["name"])
                models[public] = self._model(case, model)
                aliases |= {self.public_name(case, alias): public for alias in model.get("aliases", [])}
        return {
            "version": 1,
            "server": {"workers": int(key.rpartition("=")[2])},
            "storage": {"database_url": f"sqlite+aiosqlite:///{self.database}"},
            "providers": providers,
            "models": models,
            "aliases": aliases,
            "telemetry": {"log_format": "json", "log_level": "info"},
        }

    def _model(self, case: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
        # Falling back to another model is not built yet: what a setup calls a fallback is one more target here.
        upstreams = [*model["targets"], *model.get("fallbacks", []), *model.get("context_fallbacks", [])]
        made: dict[str, Any] = {"targets": [self._target(case, name) for name in dict.fromkeys(upstreams)]}
        if len(model["targets"]) > 1 and model.get("strategy", "weighted") == "weighted":
            # A setup that asks for no order shares the load; a fallback is for when the others do not answer.
            weights = {**dict.fromkeys(model["targets"], 1), **(model.get("weights") or {})}
            made["route"] = {"strategy": "weighted"}
            for name, target in zip(dict.fromkeys(upstreams), made["targets"], strict=True):
                target["weight"] = weights.get(name, 0)
        if len(made["targets"]) > 1:
            # Who has a second provider would rather have an answer without a parameter than none.
            made["unsupported"] = "drop"
        # A setup's timeout bounds one attempt, or the silence of a stream; our total bounds the request with all its
        # attempts, and would leave no time for a second one.
        clocks = {
            "first_event": model.get("first_token_timeout", model.get("timeout")),
            "stall": model.get("stream_idle_timeout", model.get("timeout")),
        }
        made["timeouts"] = {name: f"{round(value * 1000)}ms" for name, value in clocks.items() if value}
        if model.get("retries") is not None:
            made["retries"] = {"attempts": model["retries"] + 1}
        return made

    def _target(self, case: dict[str, Any], name: str) -> dict[str, Any]:
        upstream = case["setup"]["upstreams"][name]
        made: dict[str, Any] = {"provider": f"{case['cid']}-{name}", "model": upstream["model"]}
        for limit in ("max_output_tokens", "context_window"):
            if upstream.get(limit):
                made[limit] = upstream[limit]
        if price := (case["setup"].get("prices") or {}).get(name):
            made["price"] = price
        overrides: dict[str, Any] = {}
        for quirk, value in (upstream.get("quirks") or {}).items():
            overrides = _merged(overrides, QUIRKS[quirk](value))
        return made | ({"overrides": overrides} if overrides else {})

    def _create_key(self, config: Path, name: str, secret: str, models: list[str] | None) -> None:
        allowed = [] if models is None else ["--models", ",".join(models)]
        command = [*_gateway(), "keys", "create", "-c", str(config), "--name", name, "--secret-stdin", *allowed]
        ran = subprocess.run(
            command, input=secret, text=True, capture_output=True, env={**os.environ, **_environment()}, check=False
        )
        if ran.returncode != 0:
            raise RuntimeError(f"the key {name} could not be made: {ran.stderr.strip()}")

    async def cost_of(self, session: Any, base: str, case: Any, ctx: Any, replies: list[Any]) -> float | None:
        """What the last reply cost: from its header, or from the request log for a stream."""
        if not replies:
            return None
        told = replies[-1].headers.get("x-gateway-cost-usd")
        if told is not None:
            return float(told)
        request_id = replies[-1].headers.get("x-request-id")
        for _ in range(20):
            await asyncio.sleep(0.25)
            with sqlite3.connect(self.database) as connection:
                row = connection.execute(
                    "SELECT cost_nusd FROM requests WHERE request_id = ?", (request_id,)
                ).fetchone()
            if row is not None:
                return None if row[0] is None else row[0] / 1e9
        return None


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = {key: _merged(one[key], other[key]) for key in one.keys() & other.keys() if isinstance(one[key], dict)}
    return {**one, **other, **both}


def _paths(case: dict[str, Any]) -> Iterator[str]:
    for step in case.get("steps") or [case]:
        yield (step.get("request") or {}).get("path", "")


def _gateway() -> list[str]:
    own = ROOT / ".venv" / "bin" / "python"
    return [str(own if own.exists() else sys.executable), "-m", "gateway"]


def _environment() -> dict[str, str]:
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
    return {"PYTHONPATH": path, "NO_COLOR": "1"}
