"""What can be learned of a target, and what a lesson is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from adapters.draft import Draft
from adapters.message_facts import MessageFacts
from adapters.patches import Patch
from adapters.target import Target
from adapters.told import Told
from adapters.types import Action


class Pupil(Protocol):
    """What can be learned: what an adapter does otherwise from now on."""

    @property
    def message_facts(self) -> MessageFacts:
        """What it knows of the target's messages."""

    @property
    def target(self) -> Target:
        """What it knows of the target as a whole."""

    def learn_patch(self, param: str, patch: Patch) -> None:
        """Call *patch* as well where *param* is in a request."""

    def learn_limit(self, name: str | None, most: int | None, least: int | None = None) -> None:
        """Say the limit of an answer by *name*, none above *most*, none below *least*; None: as before."""

    def learn_no_usage(self) -> None:
        """Ask for no usage of streams."""

    def learn_streams(self) -> None:
        """Ask for streams alone."""

    def learn_one_encoding(self) -> None:
        """Ask for no encoding of vectors."""

    def learn_inputs(self, most: int) -> None:
        """Embed no more than *most* inputs at once."""

    def learn_messages(self, facts: MessageFacts) -> None:
        """Know this of the target's messages."""

    def learn_facts(self, overrides: Mapping[str, Any], conflicts: Sequence[Mapping[str, Any]]) -> None:
        """Lay *overrides* and further *conflicts* over the target's facts."""


Learned = tuple[str, Action]
"""The parameter that is put otherwise from now on, and how."""
Lesson = Callable[[Draft, Told, Pupil], Learned | None]
"""Has the pupil learn what a refusal tells of a request; None where it tells nothing that this lesson is about."""
