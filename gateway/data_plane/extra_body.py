"""``extra_body``: the argument of OpenAI's SDKs that some clients send as a parameter of that name."""

from __future__ import annotations

from typing import Final

from adapters.types import Body
from gateway.data_plane.strict_json import decode_members
from gateway.errors import InvalidRequestError

EXTRA_BODY: Final = "extra_body"


def unpack_extra_body(body: Body) -> None:
    """Put the members of ``extra_body`` where the SDKs would have put them; what stands there already stays.

    No provider knows the parameter itself, and strict ones refuse it even when it is empty.
    """
    raw = bytes(body.pop(EXTRA_BODY))
    if raw == b"null":
        return
    if not raw.startswith(b"{"):
        raise InvalidRequestError("'extra_body' has to be an object.", param=EXTRA_BODY)
    for name, value in decode_members(raw).items():
        body.setdefault(name, value)
