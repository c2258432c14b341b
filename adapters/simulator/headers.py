"""The headers of an answer: what is left of the limits, as the provider tells it, and the number of the request."""

from __future__ import annotations

from typing import Final

from adapters.spec import ProviderSpec
from adapters.vocabulary import ResetFormat

_MOST: Final = {"requests": 1000}
_MOST_TOKENS: Final = 200_000
_RESETS: Final = {
    ResetFormat.GO_DURATION: "2m59.56s",
    ResetFormat.FLOAT_SECONDS: "11.382867097855",
    ResetFormat.SECONDS: "12",
}


def limit_headers(spec: ProviderSpec, *, exhausted: bool = False) -> dict[str, str]:
    """The rate-limit headers; *exhausted* once nothing is left. ``retry-after`` only goes with a refusal."""
    facts = spec.rate_limit_headers
    found: dict[str, str] = {}
    for limit in facts.limits:
        most = _MOST.get(limit.of, _MOST_TOKENS)
        if limit.limit is not None:
            found[limit.limit] = str(most)
        if limit.remaining is not None:
            found[limit.remaining] = "0" if exhausted else str(most - 1)
        if limit.reset is not None:
            found[limit.reset] = _RESETS[facts.reset_format or ResetFormat.SECONDS]
    for name in facts.headers:
        if name.endswith("over-limit"):
            found[name] = "yes" if exhausted else "no"
    return found


def id_headers(spec: ProviderSpec, request_id: str) -> dict[str, str]:
    """The request's number, where the provider tells it."""
    name = spec.transport.request_id_header or ("x-request-id" if spec.hosted else None)
    return {name: request_id} if name is not None else {}
