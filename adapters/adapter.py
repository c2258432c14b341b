"""One target's translator: a request out, an answer, a stream or a refusal back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any, Final

import msgspec

from adapters import failures
from adapters.context import refuse_overflow
from adapters.draft import AnswerNeeds, Draft, Unsupported
from adapters.errors import ProviderError
from adapters.functions import FUNCTIONS, IN_OLD_WORDS, as_tools
from adapters.patches import is_neutral, unsupported
from adapters.rate_limits import RateLimitReader
from adapters.repair.repair import compile_repair
from adapters.request_rules import RequestRules
from adapters.scrub import Scrubber
from adapters.shapes.base import Shape
from adapters.shapes.bodies import without
from adapters.shapes.fan_out import FanOut
from adapters.shapes.prompt_as_chat import PromptAsChat
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
    """Translates by `RequestRules` on the way out, and by `repair` on the way back."""

    def __init__(
        self, target: Target, secrets: tuple[str, ...] = (), offers: Callable[[str], bool | None] | None = None
    ) -> None:
        """*secrets* are blotted out of whatever the provider says.

        *offers* tells of a parameter that depends on the model whether it has it (None: not known yet); without it
        such parameters are sent.
        """
        self.target = target
        """As it is configured; what is known by now stands in *rules*."""
        self.rules = rules = RequestRules(target, offers)
        self._provider = target.provider
        self._redact = Scrubber(secrets)
        spec = target.spec
        self.limits = RateLimitReader(spec.rate_limit_headers)
        """Reads what the provider's headers tell of its limits."""
        field = spec.streaming.progress_field
        self.progress = progress_marker(field) if field is not None else None
        """What marks the chunks of a stream that only report progress, if there are such."""
        one_choice = any(isinstance(shape, FanOut) and shape.most == 1 for shape in rules.shapes)
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
        rules = self.rules
        if FUNCTIONS in body and operation is _CHAT and (rules.old_calls or is_neutral("tools", body[FUNCTIONS])):
            return self._with_tools(body, stream, unsupported, after)
        if rules.counts_first:
            refuse_overflow(rules.target, body, operation)
        draft = Draft(body.copy(), operation, stream, unsupported)
        if rules.shape_triggers and not rules.shape_triggers.isdisjoint(body):
            for shape in self._shapes_behind(after):
                if not shape.triggers.isdisjoint(body) and shape.applies(draft):
                    return self._shaped(shape, draft)
        out = draft.body
        if rules.model is not None:
            out["model"] = rules.model
        patches = rules.patches
        if not patches.keys().isdisjoint(out):
            for param in [name for name in patches if name in out]:
                if param in out:  # an earlier patch may have taken it out
                    patches[param](draft)
        if rules.allow is not None:
            rules.allow(draft)
        if rules.name_adapter is not None:
            rules.name_adapter(out)
        if operation is _CHAT and (rules.messages.always or "tools" in out):
            rules.messages(draft)
        if rules.endpoints and operation in rules.endpoints:
            rules.endpoints[operation](draft)
        if operation is not _EMBEDDINGS:
            for name, value in rules.defaults if operation is _CHAT else rules.text_defaults:
                if name not in out or bytes(out[name]) == b"null":
                    out[name] = value
            if rules.limit is not None:
                rules.limit(draft)
        if rules.only_streams and not stream and operation is not _EMBEDDINGS:
            stream = True  # what comes is put together by whoever reads it
            out["stream"] = _TRUE
            draft.adjusted("stream", Action.EMULATED)
        if stream and rules.ask_for_usage:
            # Usage is always asked for, since metering needs it; it is hidden from clients that did not ask.
            out["stream_options"] = _with_usage(out.get("stream_options"))
        elif stream:
            out.pop("stream_options", None)
        if stream and rules.progress_param is not None:
            out[rules.progress_param] = _TRUE
        if rules.quirk is not None:
            rules.quirk(out, operation, rules.target)
        changes = tuple(draft.adjustments) if draft.adjustments else _NO_CHANGES
        return Prepared(_encode(out), changes, None, draft.needs, draft.lossy)

    def around(self, body: Body, operation: Operation, stream: bool) -> tuple[bytes, bytes] | None:
        """What stands before and behind the messages in all requests that differ from *body* in nothing else.

        None where the messages may have to be looked at, or anything else is to be said of the request.
        """
        rules = self.rules
        looks = (
            rules.counts_first
            or rules.messages.always
            or rules.allow is not None
            or rules.name_adapter is not None
            or rules.limit is not None
            or rules.quirk is not None
            or operation in rules.endpoints
        )
        special = rules.patches.keys() | rules.shape_triggers | {FUNCTIONS, "tools"}
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
        shapes = self.rules.shapes
        return shapes[shapes.index(after) + 1 :] if after in shapes else shapes

    def _shaped(self, shape: Shape, draft: Draft) -> Prepared:
        operation = Operation.CHAT if isinstance(shape, PromptAsChat) else draft.operation
        body = without(shape.first(draft.body), "stream", "stream_options")
        first = self.prepare(body, operation, False, draft.unsupported, shape)
        changes = dict.fromkeys((Adjustment(shape.param, shape.action), *draft.adjustments, *first.adjustments))
        return Prepared(b"", tuple(changes), shape, first.needs, shape.lossy or first.lossy)

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The failure that an answer other than 200 stands for."""
        cases = self.rules.target.spec.errors.cases
        limits = self.limits.read(headers) if status in (413, 429, 503) else None
        wait = limits.wait_seconds() if limits is not None else None
        return self._told(
            failures.from_response(self._provider, status, headers, body, self._redact, cases, retry_after_seconds=wait)
        )

    def error(self, fields: failures.ErrorFields) -> ProviderError:
        """The failure that an error object inside a 200 or a stream stands for."""
        cases = self.rules.target.spec.errors.cases
        return self._told(failures.from_fields(self._provider, fields, None, self._redact, cases))

    def _told(self, failure: ProviderError) -> ProviderError:
        name_adapter = self.rules.name_adapter
        return failure if name_adapter is None else name_adapter.explain(failure)


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
