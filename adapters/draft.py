"""A request on its way to one target: the body being changed, and what the changes mean for the answer."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from adapters.types import Action, Adjustment, Body, Operation


class Unsupported(StrEnum):
    """What is done about a parameter the target lacks (decision 12); the values of ``unsupported``."""

    AUTO = "auto"
    """Lossless patches as they come; a lossy emulation only where no target has the parameter."""
    EMULATE = "emulate"
    """Emulate whatever can be, in the policy's order."""
    REJECT = "reject"
    """Change nothing that a client could tell; refuse the rest."""
    DROP = "drop"
    """Leave out what the target lacks, whatever it is, and say so; a target that has it goes first."""


class AnswerNeeds(msgspec.Struct):
    """What the request asks of the answer that the provider will not do by itself."""

    stops: tuple[str, ...] = ()
    """Texts at which the answer has to be cut, because they could not be sent."""
    one_call: bool = False
    """Of several parallel tool calls only the first is kept."""
    logprobs: bool = False
    """The client asked for OpenAI's ``logprobs``, whatever shape the provider's have."""
    top_logprobs: int = 0
    call: str | None = None
    """The function that has to be called, where the provider was told so; empty for any, None where it is free."""
    asked: Body | None = None
    """The client's request with its functions as tools: the calls that come are told in its own words."""
    dimensions: int = 0
    """How long vectors have to be that the provider may have made longer."""


def asked_in(needs: AnswerNeeds | None, body: Body) -> Body:
    """What the answer is one to: the client's *body*, or what was made of it in newer words."""
    return body if needs is None or needs.asked is None else needs.asked


def of_the_words(needs: AnswerNeeds | None) -> AnswerNeeds | None:
    """What is left to do with an answer that was put together from others, each with its own needs met."""
    return None if needs is None or needs.asked is None else AnswerNeeds(asked=needs.asked, one_call=True)


class Draft(msgspec.Struct):
    """The working copy that patches change. *body* is theirs alone; the client's own stays as it came."""

    body: Body
    operation: Operation
    stream: bool
    unsupported: Unsupported = Unsupported.AUTO
    adjustments: dict[Adjustment, None] = msgspec.field(default_factory=dict)
    """The changes so far, as keys in their order."""
    needs: AnswerNeeds | None = None
    lossy: bool = False
    """An emulation changes what the client gets, so a target that needs none is better."""

    def adjusted(self, param: str, action: Action) -> None:
        """Note a change, once."""
        self.adjustments[Adjustment(param, action)] = None

    def answer_needs(self) -> AnswerNeeds:
        """What the answer needs, to be added to."""
        if self.needs is None:
            self.needs = AnswerNeeds()
        return self.needs
