"""llama.cpp's server, bundled or by URL: a check of what it would accept wrongly.

Facts: measured on xllamacpp 2026.10 on 2026-11-30. The server takes a wrong type or value of a known field as absent,
answers to unknown roles and to an empty list of messages, and gives a token for ``max_tokens: 0``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from adapters.errors import ProviderError
from adapters.target import Target
from adapters.types import Body, FailureKind, Operation

_LIMITS: Final = ("max_tokens", "max_completion_tokens")


class _Message(msgspec.Struct):
    role: str


_decode_messages = msgspec.json.Decoder(list[_Message]).decode


def prepare(body: Body, operation: Operation, target: Target) -> None:
    """Refuse what the server would misread."""
    if operation is Operation.EMBEDDINGS:
        _refuse_dimensions(body, target)
        return
    for name in _LIMITS:
        if name in body and bytes(body[name]) == b"0":
            raise _refused(name, f"'{name}' must be at least 1.")
    if operation is Operation.CHAT:
        _check_roles(body, target)


def _check_roles(body: Body, target: Target) -> None:
    roles = target.spec.messages.roles
    try:
        messages = _decode_messages(body["messages"])
    except msgspec.ValidationError as error:
        raise _refused("messages", f"'messages' is not a list of messages: {error}.") from None
    for number, message in enumerate(messages):
        if message.role not in roles:
            allowed = ", ".join(roles)
            raise _refused(
                f"messages[{number}].role", f"'{message.role[:40]}' is not a role. {target.provider} knows: {allowed}."
            )


def _refuse_dimensions(body: Body, target: Target) -> None:
    # Ignored by the server: vectors of another length than asked for would come back.
    if "dimensions" in body and bytes(body.pop("dimensions")) != b"null":
        raise ProviderError(
            FailureKind.UNSUPPORTED_PARAMETER,
            f"'dimensions' is not supported by {target.provider}: its vectors have one length.",
            param="dimensions",
            sent=False,
        )


def _refused(param: str, message: str) -> ProviderError:
    return ProviderError(FailureKind.BAD_REQUEST, message, status=400, param=param, code="invalid_value", sent=False)
