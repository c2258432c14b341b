"""What a target turns out not to take: it says so once, and from then on the request is put otherwise.

Files of facts cannot know every model, version and flag, and nothing is known of a server that is merely compatible.
A refusal that names what is refused is as good as a fact: what may be left out or said in another way is, the request
is sent again, and later ones are not refused in the first place. What a client relies on (decision 12) is never given
up like that: such a refusal is passed on.
"""

from __future__ import annotations

import re
from typing import Final

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.learned_facts import feature_refused
from adapters.learned_forms import form_told
from adapters.learned_limits import learn_inputs, learn_limit
from adapters.learned_messages import better_facts
from adapters.learned_params import learn_bounds, learn_parameter
from adapters.learned_tools import learn_names, learn_tools
from adapters.message_facts import MessageFacts
from adapters.message_patches import MessagePatches
from adapters.pupil import Learned, Lesson, Pupil
from adapters.shapes.again import AskAgain
from adapters.shapes.base import Shape
from adapters.told import Told, told_by
from adapters.types import Action, FailureKind, Operation

_OF_THE_REQUEST: Final = frozenset((FailureKind.BAD_REQUEST, FailureKind.UNSUPPORTED_PARAMETER))
_STATUSES: Final = frozenset((400, 413, 422, 500))
_ONLY_STREAMS: Final = re.compile(
    r"must (?:have|be|use) stream|only supports? stream|stream must be (?:true|enabled)|stream(?:ing)? is required"
    r"|(?:set|enable|use) (?:the )?[`'\"]?stream[`'\"]?(?: parameter| mode|=true| to true)"
    r"|for non-streaming (?:calls|requests)"
)


class LearnedRefusals:
    """A rescue for refusals that name something that need not be sent, or not like that."""

    def __init__(self, pupil: Pupil) -> None:
        self._pupil = pupil

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        told = told_of_request(failure, draft)
        if told is not None:
            for lesson in _LESSONS:
                found = lesson(draft, told, self._pupil)
                if found is not None:
                    return AskAgain(*found)
        return None

    def worked(self) -> None:
        """What was learned is true whether the answer comes or not."""


class LearnedFeatures:
    """A rescue for refusals of a feature that can be had by other means; the last, for files know better."""

    def __init__(self, pupil: Pupil) -> None:
        self._pupil = pupil

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        told = told_of_request(failure, draft)
        known = self._pupil.target.spec.params
        found = feature_refused(draft, told, known) if told is not None else None
        if found is None:
            return None
        self._pupil.learn_facts(found.overrides, found.conflicts)
        return AskAgain(found.param, Action.EMULATED)

    def worked(self) -> None:
        """As above."""


def _learn_stream(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    if draft.stream or draft.operation is Operation.EMBEDDINGS or not _ONLY_STREAMS.search(told.text):
        return None
    pupil.learn_streams()
    return "stream", Action.EMULATED


def _learn_usage(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    if not draft.stream or not ("stream_options" in told.text or "include_usage" in told.text):
        return None
    pupil.learn_no_usage()
    return "stream_options", Action.DROPPED


def _learn_encoding(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    about = "encoding_format" in told.text or "base64" in told.text
    if draft.operation is not Operation.EMBEDDINGS or "encoding_format" not in draft.body or not about:
        return None
    # Vectors are encoded here as the client wants them, whatever comes.
    pupil.learn_one_encoding()
    return "encoding_format", Action.EMULATED


def _learn_form(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    alternatives = pupil.target.spec.params.get("top_logprobs")
    most = int(alternatives.max) if alternatives is not None and alternatives.max is not None else None
    found = form_told(draft, told, most)
    if found is None:
        return None
    for param, patch in found.patches:
        pupil.learn_patch(param, patch)
    return found.param, found.action


def _learn_messages(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    if draft.operation is not Operation.CHAT:
        return None
    known = pupil.message_facts
    sent = _messages_with(known, draft)
    for facts in better_facts(known, told):
        if _messages_with(facts, draft) not in (sent, b""):
            pupil.learn_messages(facts)
            return "messages", Action.REWRITTEN
    return None


def told_of_request(failure: ProviderError, draft: Draft) -> Told | None:
    """What *failure* says of the request; None where it is about something else."""
    if failure.status not in _STATUSES or failure.kind not in _OF_THE_REQUEST:
        return None
    return told_by(failure, draft.body)


def _messages_with(facts: MessageFacts, draft: Draft) -> bytes:
    """The messages of *draft* as they are sent to a target of which these *facts* are known."""
    tried = Draft(draft.body.copy(), draft.operation, draft.stream, draft.unsupported)
    if facts.always or "tools" in tried.body:
        try:
            MessagePatches(facts)(tried)
        except ProviderError:
            return b""
    return bytes(tried.body["messages"])


_LESSONS: Final[tuple[Lesson, ...]] = (
    _learn_stream,
    learn_limit,
    _learn_usage,
    _learn_encoding,
    learn_inputs,
    _learn_form,
    learn_names,
    learn_tools,
    learn_bounds,
    learn_parameter,
    _learn_messages,
)
"""In the order in which they are tried."""
