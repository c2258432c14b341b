"""A gateway to fuzz: a provider that answers truly behind it, and a description of it that names its model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from tests.fakes.gateway import RunningGateway, running_gateway
from tests.fakes.simulated import Simulated, simulated

ADMIN_KEY: Final = "admin-key-0123456789"
MODEL: Final = "m"

_REQUESTS: Final = ("ChatRequest", "CompletionRequest", "EmbeddingsRequest")
# Most of what the description allows makes no sense to a provider. These do, so that answers come beside refusals.
_SENSIBLE: Final[dict[str, dict[str, Any]]] = {
    "messages": {
        "type": "array",
        "minItems": 1,
        "maxItems": 4,
        "items": {
            "type": "object",
            "required": ["role", "content"],
            "properties": {"role": {"enum": ["user", "assistant"]}, "content": {"type": "string", "minLength": 1}},
            "additionalProperties": False,
        },
    },
    "tools": {
        "type": "array",
        "minItems": 1,
        "maxItems": 3,
        "items": {
            "type": "object",
            "required": ["type", "function"],
            "properties": {
                "type": {"const": "function"},
                "function": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"enum": ["look", "count", "stop"]},
                        "parameters": {"const": {"type": "object", "properties": {"where": {"type": "string"}}}},
                    },
                },
            },
        },
    },
    "response_format": {
        "enum": [
            {"type": "text"},
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        ]
    },
}


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """The gateway, what is behind it, and its description."""

    gateway: RunningGateway
    upstream: Simulated
    description: dict[str, Any]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gateway.port}"

    async def server_errors(self) -> list[dict[str, Any]]:
        """The requests of the data plane that ended with a 5xx."""
        return [row for row in await self.gateway.rows() if row["status"] >= 500]


@contextlib.asynccontextmanager
async def fuzzed_gateway(provider: str = "openai_compatible") -> AsyncIterator[Fuzzed]:
    """Serve the model `MODEL` by a simulated *provider*; `ADMIN_KEY` is the operator's."""
    async with simulated(provider) as upstream:
        settings = {
            "auth": {"admin_key": ADMIN_KEY},
            "providers": {"p": upstream.settings},
            "models": {MODEL: {"targets": [{"provider": "p", "model": upstream.model}]}},
        }
        async with running_gateway(settings) as gateway:
            yield Fuzzed(gateway, upstream, _narrowed((await gateway.app.asgi.framework()).openapi()))


def _narrowed(description: dict[str, Any]) -> dict[str, Any]:
    """The description, with the one model there is, and without a time limit: that makes timeouts, which are 504s."""
    description = json.loads(json.dumps(description))
    for name in _REQUESTS:
        description["components"]["schemas"][name]["properties"]["model"] = {"const": MODEL}
    chat = description["components"]["schemas"]["ChatRequest"]["properties"]
    for name, schema in _SENSIBLE.items():
        chat[name] = {"anyOf": [schema, chat[name]]}
    for path in description["paths"].values():
        for operation in path.values():
            if "parameters" in operation:
                kept = [one for one in operation["parameters"] if one["name"] != "x-gateway-timeout"]
                operation["parameters"] = kept
    return description
