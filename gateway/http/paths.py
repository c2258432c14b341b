"""What to say about a path that does not exist, so that its sender finds the one that does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from gateway.data_plane.plane import ENDPOINTS, PREFIXES

GENERATION: Final = tuple(endpoint.path for endpoint in ENDPOINTS)
"""POST only, and answered by the data plane before a request gets to FastAPI."""

GENERATION_PATHS: Final = frozenset(prefix + path for prefix in PREFIXES for path in GENERATION)

_ENDPOINTS: Final = (*GENERATION, "/models")
_SAFE_HOST: Final = re.compile(r"[A-Za-z0-9.\-_]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
_SHOWN_CHARACTERS: Final = 200


def base_url(scheme: str, host_header: str, fallback: str) -> str:
    """The base URL a client should use, as it reached us; *fallback* is ``host:port`` for a strange Host header."""
    host = host_header if _SAFE_HOST.fullmatch(host_header) else fallback
    return f"{'https' if scheme == 'https' else 'http'}://{host}/v1"


def explain_not_found(method: str, path: str, base: str, others: Iterable[str] = ()) -> str:
    """A message that says what is wrong with *path*; *others* are the paths outside the API."""
    shown = path if len(path) <= _SHOWN_CHARACTERS else path[:_SHOWN_CHARACTERS] + "…"
    said = f"There is no {method} {shown}."
    # Only what follows the last /v1 was meant by the client: what precedes it came from its base URL.
    before, found, rest = path.rpartition("/v1/")
    tail = "/" + rest if found else path
    endpoint = next((known for known in _ENDPOINTS if _is(known, tail)), None)
    if endpoint is None:
        # A base URL with a path of its own, such as /api/chat/completions.
        endpoint = next((known for known in _ENDPOINTS if path.endswith(known)), None)
    if endpoint is not None:
        wrong = " The path holds /v1 twice:" if "/v1" in before else ""
        return f"{said}{wrong} Your base URL should be {base}, which makes this {base}{endpoint}."
    near = get_close_matches(tail.rstrip("/"), _ENDPOINTS, n=1, cutoff=0.6)
    if near:
        return f"{said} Did you mean /v1{near[0]}? Your base URL should be {base}."
    near = get_close_matches(path.rstrip("/"), list(others), n=1, cutoff=0.7)
    if near:
        return f"{said} Did you mean {near[0]}?"
    return f"{said} The API is under {base}: {', '.join(_ENDPOINTS)}."


def _is(endpoint: str, tail: str) -> bool:
    tail = tail.rstrip("/")
    return tail == endpoint or (endpoint == "/models" and tail.startswith("/models/"))
