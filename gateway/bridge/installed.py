"""Is the library there that a bridge runs? It is looked for, never imported: that would cost 7 s and 200 MB."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from gateway.__about__ import DISTRIBUTION
from gateway.bridge.errors import BridgeMissingError

LIBRARY: Final = "litellm"

COMPROMISED: Final = frozenset({"1.82.7", "1.82.8", "1.107.0"})
"""Releases of the library that were published with foreign code in them; pyproject.toml excludes them too."""

_INSTALL: Final = f"pip install '{DISTRIBUTION}[{LIBRARY}]'"


def require_library(providers: list[str]) -> None:
    """Raise `BridgeMissingError` unless the bridges called *providers* can be run on this machine."""
    if not providers:
        return
    names = ", ".join(providers)
    if sys.platform == "win32":
        raise BridgeMissingError(
            f"provider {names}: 'type: litellm_bridge' needs unix sockets, which Windows lacks. Run LiteLLM's proxy "
            "instead, and reach it by 'type: litellm_proxy'."
        )
    if find_spec(LIBRARY) is None:
        raise BridgeMissingError(
            f"provider {names}: 'type: litellm_bridge' needs the library {LIBRARY}, which is not installed. "
            f"Install it: {_INSTALL}"
        )
    try:
        found = version(LIBRARY)
    except PackageNotFoundError:  # a folder of that name on the path; its owner knows what it is
        return
    if found in COMPROMISED:
        raise BridgeMissingError(
            f"{LIBRARY} {found} was published with malicious code in it: remove it, replace every secret this machine "
            f"has seen since, then {_INSTALL}"
        )
