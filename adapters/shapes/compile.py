"""The shapes of calls a target needs, from its provider file's facts."""

from __future__ import annotations

from collections.abc import Callable

from adapters.shapes.base import Shape
from adapters.spec import ProviderSpec


def compile_shapes(
    spec: ProviderSpec, provider: str, offers: Callable[[str], bool | None] | None = None
) -> tuple[Shape, ...]:
    """The shapes to ask, in order; *offers* tells of what depends on the model whether it has it."""
    return ()
