"""What a shape is, and what it may ask of whoever sends its requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.types import Action, Body

Answer = dict[str, Any]
"""A whole answer in OpenAI's shape, decoded."""


@dataclass(frozen=True, slots=True)
class Continue:
    """The rest is the answer to *body*: streamed on where the client wants a stream."""

    body: Body
    usage: dict[str, Any] | None = None
    """What earlier calls used: the client is told the sum."""


@dataclass(frozen=True, slots=True)
class Split:
    """The answers to *bodies* are the choices of one, in this order; they are asked for at the same time."""

    bodies: tuple[Body, ...]


Outcome = Answer | Continue | Split


class Caller(Protocol):
    """Sends requests to the target of an attempt, as often as a shape needs.

    Bodies are OpenAI's: each is patched for the target like a client's own, with the shapes behind this one. What the
    calls consumed is added up and booked by the caller.
    """

    async def whole(self, body: Body) -> Answer:
        """The repaired answer to *body*, not streamed; `ProviderError` when there is none."""

    async def fetch(self, url: str, most_bytes: int) -> tuple[str, bytes]:
        """Media type and bytes of a public address; `ProviderError` BAD_REQUEST where that is not to be had."""


class Shape(Protocol):
    """One way to honour one feature. Shapes compose: each takes its feature out, and those behind it see the rest."""

    @property
    def param(self) -> str:
        """The parameter it is about, as ``x-gateway-adjusted`` names it."""

    @property
    def action(self) -> Action:
        """What it does to that."""

    @property
    def lossy(self) -> bool:
        """Whether the client may get less than from a target that does without."""

    @property
    def triggers(self) -> frozenset[str]:
        """Names of parameters; `applies` is asked only when one of them is in the body."""

    def applies(self, draft: Draft) -> bool:
        """Whether the draft uses the feature in a way the target lacks. Raises `ProviderError` for invalid use."""

    def first(self, body: Body) -> Body:
        """The first request it will send; tells, before anything is sent, whether the target can do it at all."""

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        """Honour *body*."""


class Rescue(Protocol):
    """A way out after a refusal that need not be the last word."""

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        """The shape that may still answer what was refused; None where there is no hope."""

    def worked(self) -> None:
        """That shape has answered."""
