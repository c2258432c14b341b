"""Addresses of servers: which ours can be given, and what a server is called by its own."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_SAYS_NOTHING = re.compile(r"[0-9a-f.:]+|localhost")


def is_plain(address: str) -> bool:
    """Whether *address* can stand in our configuration: http or https, a host, no password, no query."""
    if not address.isprintable() or any(sign in address for sign in "@?# "):
        return False
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def name_of(address: Any, model: str) -> str:
    """A name for a server: its host's, that of the variable its address is in, or where both say nothing *model*'s."""
    text = str(address or "")
    if text.startswith("os.environ/"):
        name = re.sub(r"_?(API_BASE|BASE_URL|URL|ENDPOINT)$", "", text.removeprefix("os.environ/"))
    else:
        try:
            name = urlsplit(text).hostname or ""
        except ValueError:
            name = ""
        name = "" if _SAYS_NOTHING.fullmatch(name) else name.partition(".")[0]
    return _NOT_IN_NAMES.sub("-", (name or model).lower()).strip("-")
