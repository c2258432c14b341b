"""Functions for what a provider file cannot say, one file a provider; no other file names a provider."""

from __future__ import annotations

from collections.abc import Callable

from adapters.quirks import llama_cpp_server
from adapters.spec import ProviderSpec
from adapters.target import Target
from adapters.types import Body, Operation

# Takes the body being prepared, free to change; raises `ProviderError` to refuse it.
RequestQuirk = Callable[[Body, Operation, Target], None]

_REQUEST: dict[str, RequestQuirk] = {
    "llama_cpp_server": llama_cpp_server.prepare,
}


def request_quirk(spec: ProviderSpec) -> RequestQuirk | None:
    """The function for requests to *spec*'s provider, or to the nearest one it inherits from."""
    return next((_REQUEST[name] for name in (spec.id, *spec.lineage) if name in _REQUEST), None)
