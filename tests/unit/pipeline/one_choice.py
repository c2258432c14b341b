"""A provider that gives one choice, what it was sent, and what each choice of a stream says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.fakes.gateway import config
from tests.fakes.openai_answers import payloads
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer

ONE_CHOICE = {"params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}


def settings(*servers: ScriptedServer, provider: dict[str, Any] | None = None, **model: Any) -> dict[str, Any]:
    made = config(*servers, retries={"attempts": 1}, **model)
    for of_one in made["providers"].values():
        of_one |= {"overrides": ONE_CHOICE, **(provider or {})}
    return made


def sent(server: ScriptedServer) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in server.requests]


def by_seed(scripts: dict[int, Script]) -> Callable[[RecordedRequest], Script]:
    """The children of a fan-out can be told by their seeds alone."""
    return lambda request: scripts[json.loads(request.body)["seed"]]


def texts(answer: Answer) -> dict[int, str]:
    """What each choice of a stream says."""
    said: dict[int, str] = {}
    for one in payloads(answer.body):
        for choice in one["choices"] if isinstance(one, dict) else ():
            said[choice["index"]] = said.get(choice["index"], "") + (choice["delta"].get("content") or "")
    return said
