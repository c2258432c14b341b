"""What stands in the messages of a request, checked for servers that would misread it."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from adapters.patches import invalid, unsupported
from adapters.spec import MessagesSpec
from adapters.vocabulary import PartSupport

_TAKEN: Final = (PartSupport.NATIVE, PartSupport.CONDITIONAL, PartSupport.BYTES)
_SHOWN: Final = 40


class _RepeatedError(Exception):
    """An object names a member twice."""


def read_unique(raw: msgspec.Raw, param: str) -> Any:
    """The value in *raw*; BAD_REQUEST where an object in it names a member twice (C10).

    Of two members of one name one reader takes the first and another the last, so that what was checked here might
    not be what the server acts on.
    """
    try:
        return json.loads(bytes(raw), object_pairs_hook=_unique)
    except _RepeatedError as error:
        message = f"The member {str(error)!r} stands twice in one object of '{param}'. Send it once."
        raise invalid(param, message, "invalid_json") from None
    except ValueError:
        raise invalid(param, f"'{param}' holds a number that cannot be read.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedError(next(name for name in names if names.count(name) > 1)[:_SHOWN])
    return members


def check_messages(raw: msgspec.Raw, spec: MessagesSpec, provider: str) -> None:
    """Refuse messages that are none, roles the provider does not know, and content that is missing or not for it."""
    for number, message in enumerate(read_unique(raw, "messages")):
        where = f"messages[{number}]"
        if not isinstance(message, dict):
            raise invalid(where, f"'{where}' is not a message: an object with 'role' and 'content' is expected.")
        role = message.get("role")
        if role not in spec.roles:
            allowed = ", ".join(spec.roles)
            found = f"{role[:_SHOWN]!r} is not a role" if isinstance(role, str) else "A message needs a role"
            raise invalid(f"{where}.role", f"{found}. {provider} knows: {allowed}.")
        if message.get("content") is not None:
            _check_content(message["content"], f"{where}.content", spec, provider)
        elif role != "assistant":
            raise invalid(f"{where}.content", f"A message of the role '{role}' needs content.")
        elif not message.get("tool_calls"):
            raise invalid(f"{where}.content", "A message of the assistant needs content or tool calls.")


def _check_content(content: Any, where: str, spec: MessagesSpec, provider: str) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise invalid(where, f"'{where}' has to be a string, or a list of at least one part.")
    for number, part in enumerate(content):
        place = f"{where}[{number}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            raise invalid(place, f"'{place}' is not a content part: an object with a 'type' is expected.")
        if spec.content_parts.get(kind) not in _TAKEN:
            error = unsupported(place, provider)
            error.message = f"Content parts of the type {kind[:_SHOWN]!r} are not supported by {provider} ({place})."
            raise error
        if kind == "text" and not isinstance(part.get("text"), str):
            raise invalid(place, f"'{place}' is a text part without a 'text'.")
