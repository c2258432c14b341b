"""What a policy is: a pure function that puts candidates in the order to try them."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Final

from adapters.target import Target

ENTRY_POINT_GROUP: Final = "switchgear.policies"
_BUILT_IN: Final = ("priority", "weighted")


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A target as a policy sees it: its facts, and what is known of it at this moment."""

    target: Target
    position: int
    """Where it stands in the model's ``targets``, from 0."""


Policy = Callable[[Sequence[Candidate]], list[Candidate]]

_registry: dict[str, Policy] = {}
_fixed: set[str] = set()


class PolicyError(Exception):
    """A policy's name is unknown or taken twice."""


def policy(name: str, *, fixed: bool = False) -> Callable[[Policy], Policy]:
    """Register a function as the policy called *name*; *fixed*: the same candidates always come in the same order.

    A policy orders; it never drops a candidate, waits, or looks at a clock: all it may use stands in the candidates.
    """

    def register(function: Policy) -> Policy:
        known = _registry.get(name)
        if known is not None and known is not function:
            raise PolicyError(f"two policies are called {name!r}: {known.__module__} and {function.__module__}")
        _registry[name] = function
        if fixed:
            _fixed.add(name)
        return function

    return register


@functools.cache
def load_policies() -> None:
    """Register the built-in policies and those other distributions offer under ``switchgear.policies``."""
    for name in _BUILT_IN:
        importlib.import_module(f"policies.{name}")
    for point in entry_points(group=ENTRY_POINT_GROUP):
        policy(point.name)(point.load())


def get_policy(name: str) -> Policy:
    """The policy called *name*; `PolicyError` naming those there are when there is none."""
    load_policies()
    try:
        return _registry[name]
    except KeyError:
        raise PolicyError(f"no policy is called {name!r}; there are: {', '.join(sorted(_registry))}") from None


def is_fixed(name: str) -> bool:
    """Whether the policy called *name* may be asked once, and not for each request."""
    return name in _fixed
