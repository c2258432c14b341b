"""How a simulator is to behave beyond what its provider's file says."""

from __future__ import annotations

import random
from dataclasses import dataclass

from adapters.simulator.faults import Fault
from adapters.spec import ProviderSpec


@dataclass(frozen=True, slots=True)
class Options:
    """All off by default: answers come at once, and nothing goes wrong."""

    key: str | None = None
    """The only key that is let in; None: one made up for providers that want one, any for others."""
    models: tuple[str, ...] = ()
    """Names to serve besides the file's own; a server whose file lists none takes any name while this is empty."""
    context_window: int | None = None
    """In tokens; None: the model's own, else 32768."""
    first_token_seconds: float = 0.0
    tokens_per_second: float | None = None
    """None: as fast as it goes."""
    jitter: float = 0.0
    """By how much of itself, at most, a time may be longer or shorter; the same for the same request."""
    fault: Fault | None = None
    """Goes wrong with every request."""
    fault_first: int | None = None
    """Only so many requests meet the fault, the first ones."""

    def key_for(self, spec: ProviderSpec) -> str | None:
        """The key to present; None where any will do, or none."""
        if self.key is not None or spec.transport.auth.optional:
            return self.key
        return f"{spec.transport.auth.key_prefix or 'sk-'}simulated-{spec.id}"


class Pace:
    """The times of one answer."""

    def __init__(self, options: Options, seed: int, slow: float | None = None) -> None:
        rate = options.tokens_per_second
        self._token = slow if slow is not None else 1 / rate if rate else 0.0
        self._first = options.first_token_seconds
        self._jitter = options.jitter
        self._random = random.Random(seed)  # noqa: S311  the same request is to take the same time

    def first_token(self) -> float:
        """Seconds before anything comes."""
        return self._varied(self._first)

    def token(self) -> float:
        """Seconds before the next token."""
        return self._varied(self._token)

    def tokens(self, count: int) -> float:
        """Seconds that *count* tokens take."""
        return sum(self.token() for _ in range(count)) if self._token else 0.0

    def _varied(self, seconds: float) -> float:
        if not self._jitter or not seconds:
            return seconds
        return seconds * (1 + self._jitter * self._random.uniform(-1, 1))
