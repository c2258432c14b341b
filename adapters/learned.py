"""What a target turns out not to take: it says so once, and from then on the request is put otherwise.

Files of facts cannot know every model, version and flag, and nothing is known of a server that is merely compatible.
A refusal that names what is refused is as good as a fact: what may be left out or said in another way is, the request
is sent again, and later ones are not refused in the first place. What a client relies on (decision 12) is never given
up like that: such a refusal is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from adapters.draft import Draft, Unsupported
from adapters.embeddings import inputs_of
from adapters.errors import ProviderError
from adapters.learned_bounds import bounds_told, least_told, one_alone
from adapters.learned_facts import feature_refused
from adapters.learned_forms import form_told
from adapters.learned_messages import better_facts
from adapters.learned_names import PlainToolNames, names_refused
from adapters.learned_schemas import PlainToolSchemas, keywords_refused
from adapters.limit_patches import NEW_LIMIT, OLD_LIMIT
from adapters.message_facts import MessageFacts
from adapters.message_patches import MessagePatches
from adapters.patches import ADVISORY, CONTRACT, Patch, is_neutral, leave_out
from adapters.shapes.again import AskAgain
from adapters.shapes.base import Shape
from adapters.target import Target
from adapters.told import Told, mentioned, told_by
from adapters.tool_patches import FUNCTION_MEMBERS, CleanTools
from adapters.types import Action, FailureKind, Operation

_OF_THE_REQUEST: Final = frozenset((FailureKind.BAD_REQUEST, FailureKind.UNSUPPORTED_PARAMETER))
_STATUSES: Final = frozenset((400, 413, 422, 500))
_NEVER_LEFT_OUT: Final = frozenset((
    "model", "messages", "input", "prompt", "stream", "tools", "tool_choice", OLD_LIMIT, NEW_LIMIT,
))  # fmt: skip
_LIMITS: Final = {OLD_LIMIT: NEW_LIMIT, NEW_LIMIT: OLD_LIMIT}
_ABOUT_THE_LIMIT: Final = re.compile(r"max_(?:completion_|output_|new_)?tokens")
_TOO_MUCH: Final = re.compile(
    r"less than|at most|no more than|up to|maximum|exceed|too (?:large|big|high)|greater than|larger than|range|<="
)
_ONLY_STREAMS: Final = re.compile(
    r"must (?:have|be|use) stream|only supports? stream|stream must be (?:true|enabled)|stream(?:ing)? is required"
    r"|(?:set|enable|use) (?:the )?[`'\"]?stream[`'\"]?(?: parameter| mode|=true| to true)"
    r"|for non-streaming (?:calls|requests)"
)
_ABOUT_INPUTS: Final = re.compile(r"\b(?:batch|inputs?|texts|items|array|list|contents)\b")
_AT_MOST: Final = re.compile(
    r"(?:larger than|greater than|more than|at most|less than|or equal to|up to|exceed\w*|limit\w*|max\w*)"
    r"\D{0,40}?(\d+)"
)
_WORDS: Final = ("reasoning_effort", "verbosity", "service_tier")
_OTHER_WORDS: Final = re.compile(r"must be (?:one of|either)|supported values|invalid value|not a valid|should be")
_NUMBERS: Final = re.compile(r"(?<![\w.-])\d{1,9}\b")
_MISSING: Final = re.compile(r"required|missing")


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


@dataclass(frozen=True, slots=True)
class LeaveOutAsTold:
    """Leave out what the target has refused, as far as that may be."""

    param: str
    provider: str

    def __call__(self, draft: Draft) -> None:
        if may_go(draft, self.param):
            leave_out(draft, self.param, self.provider)


def may_go(draft: Draft, param: str) -> bool:
    """Whether the client's *param* may be left out for a target that does not take it."""
    if not param or param not in draft.body or param in _NEVER_LEFT_OUT:
        return False
    if is_neutral(param, draft.body[param]) or draft.unsupported is Unsupported.DROP:
        return True
    return param in ADVISORY or (param not in CONTRACT and draft.unsupported is not Unsupported.REJECT)


Lesson = Callable[[Draft, Told], tuple[str, Action] | None]


class LearnedRefusals:
    """A rescue for refusals that name something that need not be sent, or not like that."""

    def __init__(self, provider: str, pupil: Pupil) -> None:
        self._provider = provider
        self._pupil = pupil
        self._lessons: tuple[Lesson, ...] = (
            self._stream,
            self._limit,
            self._usage,
            self._encoding,
            self._inputs,
            self._form,
            self._names,
            self._tools,
            self._bounds,
            self._parameter,
            self._messages,
        )

    def rescued(self, draft: Draft, failure: ProviderError) -> Shape | None:
        told = told_of_request(failure, draft)
        if told is not None:
            for lesson in self._lessons:
                found = lesson(draft, told)
                if found is not None:
                    return AskAgain(*found)
        return None

    def worked(self) -> None:
        """What was learned is true whether the answer comes or not."""

    def _stream(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        if draft.stream or draft.operation is Operation.EMBEDDINGS or not _ONLY_STREAMS.search(told.text):
            return None
        self._pupil.learn_streams()
        return "stream", Action.EMULATED

    def _limit(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        body = draft.body
        given = next((name for name in (NEW_LIMIT, OLD_LIMIT) if name in body and bytes(body[name]).isdigit()), None)
        if given is None or not (told.named in _LIMITS or _ABOUT_THE_LIMIT.search(told.text)):
            return None
        if told.named in _LIMITS and told.unsupported and draft.operation is Operation.CHAT:
            self._pupil.learn_limit(_LIMITS[told.named], None)
            return given, Action.RENAMED
        asked = int(bytes(body[given]))
        if draft.unsupported is Unsupported.REJECT:
            return None
        lower = [number for number in map(int, _NUMBERS.findall(told.text)) if 1 < number < asked]
        if lower and _TOO_MUCH.search(told.text):
            self._pupil.learn_limit(None, max(lower))
        elif (least := least_told(told.text, asked)) is not None:
            self._pupil.learn_limit(None, None, least)
        else:
            return None
        return given, Action.CLAMPED

    def _usage(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        if not draft.stream or not ("stream_options" in told.text or "include_usage" in told.text):
            return None
        self._pupil.learn_no_usage()
        return "stream_options", Action.DROPPED

    def _encoding(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        about = "encoding_format" in told.text or "base64" in told.text
        if draft.operation is not Operation.EMBEDDINGS or "encoding_format" not in draft.body or not about:
            return None
        # Vectors are encoded here as the client wants them, whatever comes.
        self._pupil.learn_one_encoding()
        return "encoding_format", Action.EMULATED

    def _inputs(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        if draft.operation is not Operation.EMBEDDINGS or "token" in told.text or not _ABOUT_INPUTS.search(told.text):
            return None
        given = inputs_of(draft.body) or 0
        lower = [number for number in map(int, _AT_MOST.findall(told.text)) if 0 < number < given]
        if not lower:
            return None
        self._pupil.learn_inputs(min(lower))
        return "input", Action.SPLIT

    def _form(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        alternatives = self._pupil.target.spec.params.get("top_logprobs")
        most = int(alternatives.max) if alternatives is not None and alternatives.max is not None else None
        found = form_told(draft, told, most)
        if found is None:
            return None
        for param, patch in found.patches:
            self._pupil.learn_patch(param, patch)
        return found.param, found.action

    def _names(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        if "tools" not in draft.body or not names_refused(told):
            return None
        tried, patch = Draft(draft.body.copy(), draft.operation, draft.stream, draft.unsupported), PlainToolNames()
        patch(tried)
        for param, action in (("tools", Action.RENAMED), ("messages", Action.REWRITTEN)):
            if tried.body.get(param) != draft.body.get(param):
                self._pupil.learn_patch("tools", patch)
                return param, action
        return None

    def _tools(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        words = frozenset(re.findall(r"[a-z_]+", told.text))
        if "tools" not in draft.body or not words & {"tools", "tool", "function", "strict"}:
            return None
        keep = FUNCTION_MEMBERS - {"strict"} if "strict" in words and told.unsupported else FUNCTION_MEMBERS
        clean = CleanTools(keep, fill_parameters="parameters" in words and bool(_MISSING.search(told.text)))
        for patch in (PlainToolSchemas(keywords_refused(bytes(draft.body["tools"]), told)), clean):
            tried = Draft(draft.body.copy(), draft.operation, draft.stream, draft.unsupported)
            patch(tried)
            if tried.body["tools"] != draft.body["tools"]:
                self._pupil.learn_patch("tools", patch)
                return "tools", Action.REWRITTEN
        return None

    def _bounds(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        alone = one_alone(draft, told)
        if may_go(draft, alone):
            self._pupil.learn_patch(alone, LeaveOutAsTold(alone, self._provider))
            return alone, Action.DROPPED
        clamp = bounds_told(draft, told, self._provider)
        if clamp is None:
            return None
        self._pupil.learn_patch(clamp.param, clamp)
        return clamp.param, Action.CLAMPED

    def _parameter(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        named = told.named
        too_long = named in ADVISORY and "too long" in told.text
        if not told.unsupported and not too_long:
            # A word of a list that the target has another list of.
            words = (name for name in _WORDS if name in told.text) if _OTHER_WORDS.search(told.text) else ()
            named = next(iter(words), "")
        elif named not in draft.body:
            named = mentioned(told, draft.body)
        if not may_go(draft, named):
            return None
        self._pupil.learn_patch(named, LeaveOutAsTold(named, self._provider))
        return named, Action.DROPPED

    def _messages(self, draft: Draft, told: Told) -> tuple[str, Action] | None:
        if draft.operation is not Operation.CHAT:
            return None
        known = self._pupil.message_facts
        sent = _messages_with(known, draft)
        for facts in better_facts(known, told):
            if _messages_with(facts, draft) not in (sent, b""):
                self._pupil.learn_messages(facts)
                return "messages", Action.REWRITTEN
        return None


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
