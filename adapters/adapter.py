"""One target's translator: a request out, an answer, a stream or a refusal back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Any, Final

import msgspec

from adapters import failures, quirks
from adapters.allow_list import AllowList
from adapters.context import refuse_overflow
from adapters.draft import AnswerNeeds, Draft, Unsupported
from adapters.endpoint_patches import CHAT_ONLY, EndpointPatches
from adapters.errors import ProviderError
from adapters.fine_tunes import AdapterNaming
from adapters.functions import FUNCTION_CALL, FUNCTIONS, IN_OLD_WORDS, as_tools
from adapters.learned import LearnedFeatures, LearnedRefusals
from adapters.limit_patches import with_limit
from adapters.message_facts import MessageFacts, message_facts
from adapters.message_patches import MessagePatches
from adapters.patches import Patch, is_neutral, unsupported, with_patch
from adapters.rate_limits import RateLimitReader
from adapters.repair.repair import compile_repair
from adapters.request_patches import compile_patches, limit_to_send
from adapters.scrub import Scrubber
from adapters.shapes.base import Shape
from adapters.shapes.bodies import without
from adapters.shapes.compile import compile_rescues, compile_shapes
from adapters.shapes.fan_out import FanOut
from adapters.shapes.prompt_as_chat import PromptAsChat
from adapters.shapes.retell_calls import RetellCalls
from adapters.shapes.split_inputs import SplitInputs
from adapters.spec import Support
from adapters.stream import progress_marker
from adapters.target import Target
from adapters.types import Action, Adjustment, Body, FailureKind, Operation

_encode = msgspec.json.Encoder().encode
_TRUE: Final = msgspec.Raw(b"true")
_INCLUDE_USAGE: Final = msgspec.Raw(b'{"include_usage":true}')
_CHAT, _EMBEDDINGS = Operation.CHAT, Operation.EMBEDDINGS
_NO_CHANGES: Final[tuple[Adjustment, ...]] = ()


class Prepared(msgspec.Struct, frozen=True):
    """A body ready to be sent to one target, and what was changed in it."""

    body: bytes
    """Empty where *shape* has to honour the request."""
    adjustments: tuple[Adjustment, ...]
    shape: Shape | None = None
    """Sends the requests there have to be in place of this one."""
    needs: AnswerNeeds | None = None
    """What is left to do with the answer."""
    lossy: bool = False
    """A client may get less than from a target that needs no emulation."""


class Adapter:
    """Compiled once from a target's facts, so that a request pays only for the parameters it carries."""

    def __init__(
        self, target: Target, secrets: tuple[str, ...] = (), offers: Callable[[str], bool | None] | None = None
    ) -> None:
        """*secrets* are blotted out of whatever the provider says.

        *offers* tells of a parameter that depends on the model whether it has it (None: not known yet); without it
        such parameters are sent.
        """
        self.target = target
        self._secrets, self._offers = secrets, offers
        self._taught: dict[Any, Callable[[Mapping[str, Patch]], dict[str, Patch]]] = {}
        """How refusals have changed the patches since."""
        self._provider = target.provider
        self._redact = Scrubber(secrets)
        self.limits = RateLimitReader(target.spec.rate_limit_headers)
        """Reads what the provider's headers tell of its limits."""
        spec = target.spec
        self._model = msgspec.Raw(_encode(target.model)) if target.model and target.fine_tunes is None else None
        self._name_adapter = None
        if target.fine_tunes is not None and spec.lora is not None:
            self._name_adapter = AdapterNaming(target.fine_tunes, spec.lora, self._provider)
        canonical = spec.canonical(target.model)
        most, window = target.max_output_tokens, target.context_window
        patches = compile_patches(spec, self._provider, canonical, most, offers, window)
        self._patches: Mapping[str, Patch] = patches.by_param
        self._shapes = compile_shapes(spec, self._provider, offers, target.model)
        known = compile_rescues(spec, self._shapes, offers, target.model)
        self.rescues = (LearnedRefusals(self._provider, self), *known, LearnedFeatures(self))
        """What may still answer a request that the provider has refused."""
        self.when_learned: Callable[[], object] = _nothing
        """Called when requests that are known already have to be made anew."""
        self._split: SplitInputs | None = None
        self._only_streams = False
        self._shape_triggers = frozenset().union(*(shape.triggers for shape in self._shapes))
        triggers = self._shape_triggers - {"stream"}
        self.special = patches.special.union(*(shape.triggers for shape in self._shapes if shape.lossy))
        """Parameters for which this target may refuse a request, or give a client less than another one would."""
        self.patched = patches.unknown.union(patches.by_param, triggers)
        """Parameters that this target may not take as they are."""
        only_known = spec.transport.unknown_body_fields.only_known
        added = frozenset((*spec.context.ask_for_error, *spec.reasoning.off)) if only_known else frozenset()
        self._allow = AllowList(spec, self._provider, added) if only_known else None
        usage = spec.params.get("stream_options.include_usage")
        self._ask_for_usage = usage is None or usage.support in (Support.NATIVE, Support.CONDITIONAL, Support.LIMITED)
        retold = any(isinstance(shape, RetellCalls) and shape.offers is None for shape in self._shapes)
        self.message_facts = message_facts(spec, self._provider, canonical, retold=retold)
        self._messages = MessagePatches(self.message_facts)
        added_always = {**spec.context.ask_for_error, **spec.defaults}
        self._old_calls = FUNCTIONS not in {name.partition("(")[0] for name in spec.extra_params}
        if self._old_calls:
            self.patched |= {FUNCTIONS, FUNCTION_CALL}
            self.special |= {FUNCTIONS} if "tools" in self.special else set()
        self._defaults = [(name, msgspec.Raw(_encode(value))) for name, value in added_always.items()]
        self._text_defaults = [pair for pair in self._defaults if pair[0] not in CHAT_ONLY]
        self._endpoints = {
            operation: EndpointPatches(endpoint.lacks, endpoint.unsure, self._provider)
            for operation in (Operation.COMPLETIONS, Operation.EMBEDDINGS)
            if (endpoint := spec.endpoints.get(operation)) is not None and (endpoint.lacks or endpoint.unsure)
        }
        self._limit = limit_to_send(spec, target.max_output_tokens)
        self._quirk = quirks.request_quirk(spec)
        self._counts_first = spec.context.count_first and target.context_window is not None
        self._progress_param = spec.streaming.progress_param
        field = spec.streaming.progress_field
        self.progress = progress_marker(field) if field is not None else None
        """What marks the chunks of a stream that only report progress, if there are such."""
        one_choice = any(isinstance(shape, FanOut) and shape.most == 1 for shape in self._shapes)
        self.usage_per_choice = spec.usage.per_choice and not one_choice
        self.repair = compile_repair(spec, target.model)
        """What makes answers read like OpenAI's."""

    def prepare(
        self,
        body: Body,
        operation: Operation,
        stream: bool,
        unsupported: Unsupported = Unsupported.AUTO,
        after: Shape | None = None,
    ) -> Prepared:
        """The request for this target; `ProviderError` UNSUPPORTED_PARAMETER or BAD_REQUEST where it cannot take it.

        *body* stays as it is. Where a shape has to honour it, its first request is prepared for the sake of what
        that would be refused or have changed, and not kept. The requests of a shape, *after*, are shown only to the
        shapes behind it.
        """
        if FUNCTIONS in body and operation is _CHAT and (self._old_calls or is_neutral("tools", body[FUNCTIONS])):
            return self._with_tools(body, stream, unsupported, after)
        if self._counts_first:
            refuse_overflow(self.target, body, operation)
        draft = Draft(body.copy(), operation, stream, unsupported)
        if self._shape_triggers and not self._shape_triggers.isdisjoint(body):
            for shape in self._shapes_behind(after):
                if not shape.triggers.isdisjoint(body) and shape.applies(draft):
                    return self._shaped(shape, draft)
        out = draft.body
        if self._model is not None:
            out["model"] = self._model
        patches = self._patches
        if not patches.keys().isdisjoint(out):
            for param in [name for name in patches if name in out]:
                if param in out:  # an earlier patch may have taken it out
                    patches[param](draft)
        if self._allow is not None:
            self._allow(draft)
        if self._name_adapter is not None:
            self._name_adapter(out)
        if operation is _CHAT and (self._messages.always or "tools" in out):
            self._messages(draft)
        if self._endpoints and operation in self._endpoints:
            self._endpoints[operation](draft)
        if operation is not _EMBEDDINGS:
            for name, value in self._defaults if operation is _CHAT else self._text_defaults:
                if name not in out or bytes(out[name]) == b"null":
                    out[name] = value
            if self._limit is not None:
                self._limit(draft)
        if self._only_streams and not stream and operation is not _EMBEDDINGS:
            stream = True  # what comes is put together by whoever reads it
            out["stream"] = _TRUE
            draft.adjusted("stream", Action.EMULATED)
        if stream and self._ask_for_usage:
            # Usage is always asked for, since metering needs it; it is hidden from clients that did not ask.
            out["stream_options"] = _with_usage(out.get("stream_options"))
        elif stream:
            out.pop("stream_options", None)
        if stream and self._progress_param is not None:
            out[self._progress_param] = _TRUE
        if self._quirk is not None:
            self._quirk(out, operation, self.target)
        changes = tuple(draft.adjustments) if draft.adjustments else _NO_CHANGES
        return Prepared(_encode(out), changes, None, draft.needs, draft.lossy)

    def around(self, body: Body, operation: Operation, stream: bool) -> tuple[bytes, bytes] | None:
        """What stands before and behind the messages in all requests that differ from *body* in nothing else.

        None where the messages may have to be looked at, or anything else is to be said of the request.
        """
        looks = (
            self._counts_first
            or self._messages.always
            or self._allow is not None
            or self._name_adapter is not None
            or self._limit is not None
            or self._quirk is not None
            or operation in self._endpoints
        )
        special = self._patches.keys() | self._shape_triggers | {FUNCTIONS, "tools"}
        if looks or operation is not _CHAT or not special.isdisjoint(body):
            return None
        mark = token_hex(16).encode()
        prepared = self.prepare({**body, "messages": msgspec.Raw(mark)}, operation, stream)
        if prepared.adjustments or prepared.needs is not None or prepared.lossy:
            return None
        before, _, after = prepared.body.partition(mark)
        return before, after

    def _with_tools(self, body: Body, stream: bool, unsupported: Unsupported, after: Shape | None) -> Prepared:
        """The request with its functions as tools."""
        modern, changes = as_tools(body)
        try:
            made = self.prepare(modern, Operation.CHAT, stream, unsupported, after)
        except ProviderError as failure:
            failure.param = IN_OLD_WORDS.get(failure.param or "", failure.param)
            raise
        if not changes:
            return made
        needs = AnswerNeeds() if made.needs is None or made.shape is not None else made.needs
        needs.asked, needs.one_call = modern, True
        return Prepared(made.body, (*changes, *made.adjustments), made.shape, needs, made.lossy)

    def _shapes_behind(self, after: Shape | None) -> tuple[Shape, ...]:
        shapes = self._shapes
        return shapes[shapes.index(after) + 1 :] if after in shapes else shapes

    def _shaped(self, shape: Shape, draft: Draft) -> Prepared:
        operation = Operation.CHAT if isinstance(shape, PromptAsChat) else draft.operation
        body = without(shape.first(draft.body), "stream", "stream_options")
        first = self.prepare(body, operation, False, draft.unsupported, shape)
        changes = dict.fromkeys((Adjustment(shape.param, shape.action), *draft.adjustments, *first.adjustments))
        return Prepared(b"", tuple(changes), shape, first.needs, shape.lossy or first.lossy)

    # What a target turns out not to take

    def learn_patch(self, param: str, patch: Patch) -> None:
        """Call *patch* as well where *param* is in a request."""
        self._teach(partial(with_patch, param=param, patch=patch))
        self.patched |= {param}

    def learn_limit(self, name: str | None, most: int | None) -> None:
        """Say the limit of an answer by *name*, and nothing above *most*; None: as before."""
        self._teach(partial(with_limit, name=name, most=most))

    def _teach(self, change: partial[dict[str, Patch]]) -> None:
        lesson = (change.func, *change.keywords.items())
        if lesson in self._taught:  # requests that were on their way before are refused as well
            return
        self._taught[lesson] = change
        self._patches = change(self._patches)
        self.when_learned()

    def learn_no_usage(self) -> None:
        """Ask for no usage of streams."""
        self._ask_for_usage = False
        self.when_learned()

    def learn_streams(self) -> None:
        """Ask for streams alone."""
        self._only_streams = True
        self.when_learned()

    def learn_one_encoding(self) -> None:
        """Ask for no encoding of vectors."""
        endpoint = self.target.spec.endpoints.get(_EMBEDDINGS)
        lacks, unsure = (endpoint.lacks, endpoint.unsure) if endpoint is not None else ((), ())
        patches = EndpointPatches((*lacks, "base64"), unsure, self._provider)
        self._endpoints = {**self._endpoints, _EMBEDDINGS: patches}

    def learn_inputs(self, most: int) -> None:
        """Embed no more than *most* inputs at once."""
        self._split = SplitInputs(most)
        self._shapes = (self._split, *(shape for shape in self._shapes if not isinstance(shape, SplitInputs)))
        self._shape_triggers |= self._split.triggers
        self.patched |= self._split.triggers

    def learn_facts(self, overrides: Mapping[str, Any], conflicts: Sequence[Mapping[str, Any]]) -> None:
        """Lay *overrides* and further *conflicts* over the target's facts."""
        spec = self.target.spec.with_overrides(overrides).with_conflicts(conflicts)
        made = Adapter(replace(self.target, spec=spec), self._secrets, self._offers)
        self.target, self._shapes, self._shape_triggers = made.target, made._shapes, made._shape_triggers
        self._patches = made._patches
        if self._split is not None:
            self.learn_inputs(self._split.most)
        for teach in self._taught.values():
            self._patches = teach(self._patches)
        self.special, self.patched = self.special | made.special, self.patched | made.patched
        self.rescues = (self.rescues[0], *made.rescues[1:-1], self.rescues[-1])
        self.when_learned()

    def learn_messages(self, facts: MessageFacts) -> None:
        """Know this of the target's messages."""
        self.message_facts, self._messages = facts, MessagePatches(facts)
        self.when_learned()

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The failure that an answer other than 200 stands for."""
        cases = self.target.spec.errors.cases
        limits = self.limits.read(headers) if status in (413, 429, 503) else None
        wait = limits.wait_seconds() if limits is not None else None
        return self._told(
            failures.from_response(self._provider, status, headers, body, self._redact, cases, retry_after_seconds=wait)
        )

    def error(self, fields: failures.ErrorFields) -> ProviderError:
        """The failure that an error object inside a 200 or a stream stands for."""
        cases = self.target.spec.errors.cases
        return self._told(failures.from_fields(self._provider, fields, None, self._redact, cases))

    def _told(self, failure: ProviderError) -> ProviderError:
        return failure if self._name_adapter is None else self._name_adapter.explain(failure)


def _nothing() -> None:
    """There is nobody to be told."""


def _with_usage(options: msgspec.Raw | None) -> msgspec.Raw:
    if options is None or bytes(options) == b"null":
        return _INCLUDE_USAGE
    fields: dict[str, Any] = msgspec.json.decode(options)
    if fields.get("include_usage") is True:
        return options
    return msgspec.Raw(_encode({**fields, "include_usage": True}))


def refuse_operation(target: Target, operation: Operation) -> ProviderError:
    """The failure of a target that does not offer *operation* at all."""
    error = unsupported("model", target.provider)
    endpoint = target.spec.endpoints.get(operation)
    hint = f" {endpoint.hint}" if endpoint is not None and endpoint.hint else ""
    error.message = f"{target.provider} does not offer {operation.value.replace('_', ' ')} for this model.{hint}"
    error.kind = FailureKind.UNSUPPORTED_PARAMETER
    return error
