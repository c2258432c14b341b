"""An endpoint of the data plane: its path, and how its body becomes what the pipeline needs to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from adapters.types import Body, Operation
from gateway.data_plane.body import read_bool, read_str
from gateway.data_plane.parameters import is_set
from gateway.errors import InvalidRequestError, MissingParameterError

if TYPE_CHECKING:
    from gateway.pipeline.call import Call


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path, answered under ``/v1``, ``/openai/v1`` and without prefix."""

    path: str
    operation: Operation
    read: Callable[[Call], None]
    """Checks the call's body and takes from it what the pipeline acts on; raises `InvalidRequestError`."""


def read_model_name(body: Body) -> str:
    """The model a client asks for; no control characters, at most 256 of them."""
    name = read_str(body, "model", max_length=256)
    if not name:
        raise MissingParameterError("model")
    if not name.isprintable():
        raise InvalidRequestError("The model's name holds control characters.", param="model")
    return name


def read_stream_options(call: Call) -> None:
    """Whether to stream, and whether the usage chunk was asked for."""
    body = call.body
    call.stream = "stream" in body and read_bool(body, "stream") is True
    if "stream_options" not in body:
        return
    if not call.stream:
        # Sent by clients that toggle only `stream`; OpenAI refuses it, which helps nobody.
        del body["stream_options"]
    elif is_set(body, "stream_options"):
        options: dict[str, Any] = msgspec.json.decode(body["stream_options"])
        call.wants_usage = options.get("include_usage") is True


def read_count(body: Body, *names: str) -> int | None:
    """The first of *names* that is set; they were checked to be whole numbers."""
    for name in names:
        raw = body.get(name)
        if raw is not None and (value := msgspec.json.decode(raw)) is not None:
            return int(value)
    return None
