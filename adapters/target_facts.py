"""A provider's file as it holds for one target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from adapters.patches import LeaveOut
from adapters.spec import ParamSpec, ProviderSpec, Support
from adapters.spec_parts import is_one_of
from adapters.vocabulary import Patch as Word

Offers = Callable[[str], bool | None]

_LACKING: Final = (Support.REJECTED, Support.ABSENT, Support.UNKNOWN)


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What is known of one target, and what follows for a parameter that it lacks."""

    spec: ProviderSpec
    provider: str
    canonical: str
    """The canonical name of its model."""
    most: int | None
    """The most tokens of an answer."""
    offers: Offers | None
    """Tells of what depends on the model whether it has it; None: not known yet."""
    window: int | None = None
    """The tokens that prompt and answer may have together."""

    def has_no(self, facts: ParamSpec) -> bool:
        """Whether sending the parameter has no effect, or is not allowed."""
        return facts.support is Support.IGNORED or self.lacks(facts)

    def lacks(self, facts: ParamSpec) -> bool:
        """Whether sending the parameter is not allowed, or not to be relied on."""
        if facts.support is Support.CONDITIONAL and not facts.models:
            # It depends on what nobody can know beforehand: the file says whether to rely on it.
            return facts.patch in (Word.STRIP, Word.ERROR)
        return facts.support in _LACKING or (
            facts.support is Support.CONDITIONAL and not is_one_of(self.canonical, facts.models)
        )

    def has_no_tools(self) -> bool:
        """Whether tools are never sent: they are refused, left out, or emulated."""
        facts = self.spec.params.get("tools")
        return facts is not None and self.has_no(facts) and not self.is_offered(facts)

    def is_offered(self, facts: ParamSpec) -> bool:
        """Whether it is the model of a running engine that tells."""
        return facts.support is Support.CONDITIONAL and not facts.models and self.offers is not None

    def without(self, name: str, facts: ParamSpec) -> LeaveOut:
        """What leaves the parameter out, or refuses it."""
        return LeaveOut(name, self.provider, facts.hint or "", refuse=facts.patch is Word.ERROR)
