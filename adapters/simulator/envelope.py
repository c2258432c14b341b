"""Writes error bodies in a provider's own shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.simulator.refusal import RefusedError
from adapters.vocabulary import Envelope

_BARE: Final = (Envelope.FLAT, Envelope.FLAT_OBJECT, Envelope.DETAIL)


def error_body(envelope: Envelope, refusal: RefusedError) -> dict[str, Any]:
    """The decoded body by which *refusal* is told."""
    message, kind, extra = refusal.message, refusal.type, dict(refusal.extra)
    full = {"message": message, "type": kind, "param": refusal.param, "code": refusal.code, **extra}
    match envelope:
        case Envelope.OPENAI:
            return {"error": full}
        case Envelope.INTEGER_CODE:
            return {"error": {**full, "code": refusal.status}}
        case Envelope.NESTED_OBJECT:
            code = {"code": refusal.code} if refusal.code is not None else {}
            return {"error": {"object": "error", "type": kind, **code, "message": message, **extra}}
        case Envelope.FLAT:
            return full
        case Envelope.FLAT_OBJECT:
            return {"object": "error", **full, "code": refusal.status}
        case Envelope.ERROR_TYPE:
            return {"error": message, "error_type": kind}
        case Envelope.DETAIL:
            # Field errors come as a list; everything else as text.
            place = ["body", *(refusal.param or "").split(".")]
            return {"detail": [{"loc": place, "msg": message, "type": kind}] if refusal.status == 422 else message}
        case Envelope.STRING:
            return {"error": message}


def event_body(envelope: Envelope, in_streams: Envelope | None, refusal: RefusedError) -> Mapping[str, Any]:
    """The payload of an error event in a stream, which always says that it is one."""
    if in_streams is not None:
        return error_body(in_streams, refusal)
    body = error_body(envelope, refusal)
    return {"error": body} if envelope in _BARE else body
