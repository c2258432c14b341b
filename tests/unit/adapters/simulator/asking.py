"""Asks a simulator without a server: its answers decoded, its streams as payloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.registry import DIRECTORY, load_spec
from adapters.simulator.engine import Simulator
from adapters.simulator.options import Options
from adapters.simulator.wire import Answer, Break, Request, Wait
from adapters.types import Operation

PROVIDERS = sorted(path.stem for path in DIRECTORY.glob("*.yaml"))
CHATS = [name for name in PROVIDERS if load_spec(name).endpoints[Operation.CHAT].available]
"""The providers that chat; presets are left out, since each is one of these but for an address."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer, played to its end without waiting."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    delay: float
    waits: list[float]
    ending: Break | None

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def choice(self) -> Any:
        """The first choice of a whole answer."""
        return self.json["choices"][0]

    @property
    def text(self) -> Any:
        return self.choice["message"]["content"]

    @property
    def payloads(self) -> list[Any]:
        """The decoded events of a stream; an end marker stays text."""
        lines = [part[6:] for part in self.raw.split(b"\n\n") if part.startswith(b"data: ")]
        return ["[DONE]" if line == b"[DONE]" else json.loads(line) for line in lines]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [payload for payload in self.payloads if isinstance(payload, dict)]

    def joined(self, field: str, index: int = 0) -> str:
        """The text a stream adds to *field* of one choice."""
        deltas = [
            choice.get("delta") or choice
            for chunk in self.chunks
            for choice in chunk["choices"]
            if choice["index"] == index
        ]
        return "".join(delta.get(field) or "" for delta in deltas)

    @property
    def reasons(self) -> list[str]:
        return [
            choice["finish_reason"] for chunk in self.chunks for choice in chunk["choices"] if choice["finish_reason"]
        ]


def simulator(provider: str, overrides: Mapping[str, Any] | None = None, **options: Any) -> Simulator:
    return Simulator(load_spec(provider).with_overrides(overrides or {}), Options(**options))


def hear(answer: Answer) -> Heard:
    steps = list(answer.steps)
    raw = b"".join(step for step in steps if isinstance(step, bytes))
    waits = [step.seconds for step in steps if isinstance(step, Wait)]
    endings = [step for step in steps if isinstance(step, Break)]
    return Heard(answer.status, answer.headers, raw, answer.delay, waits, endings[-1] if endings else None)


def ask(
    sim: Simulator, operation: Operation = Operation.CHAT, headers: Mapping[str, str] | None = None, **body: Any
) -> Heard:
    """One request with a key that is let in; *body* adds to a model it serves and a greeting, or replaces."""
    if operation is Operation.CHAT:
        body = {"messages": [user("Say hello.")], **body}
    path = f"{sim.base_path}{sim.spec.endpoints[operation].path}"
    raw = json.dumps({"model": sim.models.names()[0], **body}).encode()
    return hear(sim.handle(Request("POST", path, {**key_headers(sim), **(headers or {})}, raw)))


def key_headers(sim: Simulator) -> dict[str, str]:
    auth = sim.spec.transport.auth
    return {auth.header.lower(): auth.header_value(sim.key)} if sim.key is not None else {}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def tool(name: str, **properties: str) -> dict[str, Any]:
    """A function whose arguments are of the given types, all required."""
    schema = {name: {"type": kind} for name, kind in properties.items()}
    parameters = {"type": "object", "properties": schema, "required": list(schema), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}
