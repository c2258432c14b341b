"""An endpoint of the data plane: its path, and how its body becomes what the pipeline needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from adapters.types import Body, Operation
from gateway.errors import InvalidRequestError, MissingParameterError
from gateway.scopes import Scope

if TYPE_CHECKING:
    from gateway.pipeline.call import Call


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path, answered under ``/v1``, ``/openai/v1`` and without prefix."""

    path: str
    operation: Operation
    read: Callable[[Call], None]
    """Checks the call's body and takes from it what the pipeline acts on; raises `InvalidRequestError`."""
    scope: Scope = Scope.KEY
    """Who may use it; the data plane lets nobody in without a key."""


_decode_name = msgspec.json.Decoder(Annotated[str, msgspec.Meta(max_length=256)] | None).decode


def read_model_name(body: Body) -> str:
    """The model a client asks for; no control characters, at most 256 of them."""
    try:
        name = _decode_name(body.get("model", b"null"))
    except msgspec.DecodeError as error:
        raise InvalidRequestError(f"Invalid value for 'model': {error}.", param="model") from None
    if not name:
        raise MissingParameterError("model")
    if not name.isprintable():
        raise InvalidRequestError("The model's name holds control characters.", param="model")
    return name


def take_generation(call: Call, values: Mapping[str, Any], *limits: str) -> None:
    """Take what steers a generation from the checked *values*; *limits* name its output limit, the newest first."""
    get = values.get
    call.stream = get("stream") is True
    call.choices = get("n") or 1
    for name in limits:
        if (limit := get(name)) is not None:
            call.output_limit = limit
            break
    if "stream_options" in values:
        if call.stream:
            options = values["stream_options"]
            call.wants_usage = options is not None and options.include_usage is True
        else:
            # Sent by clients that toggle only `stream`; OpenAI refuses it, which helps nobody.
            del call.body["stream_options"]
