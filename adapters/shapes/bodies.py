"""How shapes make one request out of another."""

from __future__ import annotations

from typing import Any

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.messages import read_unique
from adapters.patches import is_neutral, unsupported
from adapters.types import Body

Message = dict[str, Any]

_encode = msgspec.json.Encoder().encode


def without(body: Body, *names: str) -> Body:
    """*body* without some of its parameters."""
    return {name: value for name, value in body.items() if name not in names}


def changed(body: Body, **values: Any) -> Body:
    """*body* with other values for some of its parameters."""
    return {**body, **{name: msgspec.Raw(_encode(value)) for name, value in values.items()}}


def value_of(body: Body, name: str) -> Any:
    """The decoded value of a parameter, None where it is absent; BAD_REQUEST where it names a member twice."""
    raw = body.get(name)
    return None if raw is None else read_unique(raw, name)


def is_used(body: Body, name: str) -> bool:
    """Whether the parameter is there and asks for something."""
    return name in body and not is_neutral(name, body[name])


def wanted_format(body: Body) -> str:
    """The type of ``response_format`` that is asked for, "" where that is plain text."""
    if not is_used(body, "response_format"):
        return ""
    wanted = value_of(body, "response_format")
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    return kind if isinstance(kind, str) and kind != "text" else ""


def may_emulate(draft: Draft, param: str, provider: str) -> bool:
    """Whether a lossy emulation of *param* is wanted; UNSUPPORTED_PARAMETER where the client would rather be refused.

    Who wants it dropped gets that from the patches.
    """
    if draft.unsupported is Unsupported.REJECT:
        raise unsupported(param, provider, "It could be emulated, which the request asks not to do.")
    return draft.unsupported is not Unsupported.DROP


def with_instruction(messages: list[Message], text: str) -> list[Message]:
    """*messages* with *text* added to the leading system message, or in a new one where there is none."""
    if not messages or messages[0].get("role") not in ("system", "developer"):
        return [{"role": "system", "content": text}, *messages]
    first, content = messages[0], messages[0].get("content")
    if isinstance(content, list):
        joined: Any = [*content, {"type": "text", "text": text}]
    else:
        joined = f"{content}\n\n{text}" if content else text
    return [{**first, "content": joined}, *messages[1:]]
