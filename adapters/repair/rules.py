"""What a provider's file says of its answers, compiled once for a target."""

from __future__ import annotations

from typing import Final

from adapters.repair.finish import FinishReasons
from adapters.spec import ProviderSpec
from adapters.spec_parts import is_one_of
from adapters.stream import progress_marker

_USUAL: Final = frozenset(("content", "reasoning_content", "reasoning"))


class Rules:
    """The facts that repairs act on; what is always safe needs none."""

    def __init__(self, spec: ProviderSpec, model: str = "") -> None:
        """*model* is the provider's name for it, given to answers that leave it out."""
        facts, streaming, canonical = spec.reasoning, spec.streaming, spec.canonical(model)
        self.model = model
        self.finish = FinishReasons(spec.finish_reason.nonstandard, spec.finish_reason.missing)
        self.opened = facts.opens_for(canonical)
        """The first of the tags is open when an answer begins."""
        self.off = facts.switch_for(canonical) if self.opened else {}
        """The members of a request that keep it closed."""
        self.tags = facts.tags if self.opened else facts.tags_for(canonical)
        fields = (facts.out_field, facts.alt_out_field, facts.stream_field, facts.alt_stream_field)
        told = [(field or "").rpartition(".")[2] for field in fields]
        odd = [name for name in dict.fromkeys(told) if name and name not in _USUAL]
        self.reasoning_members = ("reasoning", *odd)
        """The members that reasoning comes in, apart from ``reasoning_content``."""
        self.usage_path = _path(streaming.usage_field)
        self.error_path = _path(streaming.error_field)
        # Where a provider's own figures stand, there is nothing for clients.
        self.private = frozenset({*spec.transport.private_members, self.usage_path[0], self.error_path[0]} - {""})
        self.markers = tuple(progress_marker(name) for name in sorted({*self.private, *odd}))
        """Bytes by which an event is known that holds something of the provider's own."""
        written = spec.messages.calls_in_content
        self.calls_in_content = written if isinstance(written, bool) else is_one_of(canonical, written)


def _path(field: str | None) -> tuple[str, str]:
    member, _, name = (field or "").partition(".")
    return (member, name) if name else ("", "")
