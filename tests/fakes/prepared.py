"""What a target would be sent for a request, in plain values."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from adapters.adapter import Adapter
from adapters.draft import AnswerNeeds, Unsupported
from adapters.registry import load_spec
from adapters.shapes.base import Shape
from adapters.target import Target
from adapters.types import Body, Operation

HELLO = {"role": "user", "content": "Say hello."}
_REQUIRED: dict[Operation, dict[str, Any]] = {
    Operation.CHAT: {"messages": [HELLO]},
    Operation.COMPLETIONS: {"prompt": "a"},
    Operation.EMBEDDINGS: {},
}


class Sent(NamedTuple):
    """A prepared request, decoded."""

    body: dict[str, Any]
    """Empty where a shape honours the request."""
    told: list[str]
    """The changes, as ``x-gateway-adjusted`` has them."""
    needs: AnswerNeeds | None
    lossy: bool
    shape: Shape | None


def one(name: str, value: Any) -> dict[str, Any]:
    """A parameter whose name is not known beforehand."""
    return {name: value}


def body_of(**members: Any) -> Body:
    """A request's body as it comes from a client."""
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in members.items()}


def adapter_of(provider: str, model: str = "m", *, most: int | None = None, **overrides: Any) -> Adapter:
    """The adapter of a target called ``acme/up``, of that type of provider."""
    spec = load_spec(provider).with_overrides(overrides)
    return Adapter(Target("acme/up", "acme", model, spec, max_output_tokens=most))


def sent_by(
    adapter: Adapter,
    operation: Operation = Operation.CHAT,
    unsupported: Unsupported = Unsupported.AUTO,
    **members: Any,
) -> Sent:
    """What *adapter* makes of a request with these parameters."""
    body = body_of(model="asked", **{**_REQUIRED[operation], **members})
    before = {name: bytes(value) for name, value in body.items()}
    prepared = adapter.prepare(body, operation, False, unsupported)
    assert {name: bytes(value) for name, value in body.items()} == before  # a fallback starts from the same
    sent = json.loads(prepared.body) if prepared.body else {}
    told = [str(change) for change in prepared.adjustments]
    return Sent(sent, told, prepared.needs, prepared.lossy, prepared.shape)
