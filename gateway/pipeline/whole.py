"""An answer in one piece, read and checked before anybody believes it."""

from __future__ import annotations

from typing import Final

import msgspec

from adapters import answers
from adapters.adapter import Adapter
from adapters.draft import AnswerNeeds
from adapters.embeddings import MissingVectorsError, lengths
from adapters.errors import TOOL_CALL_MISSING, ProviderError
from adapters.failures import ErrorFields, read_error
from adapters.finite import with_finite_numbers
from adapters.patches import unsupported
from adapters.repair.forced import lacks_call
from adapters.repair.misplaced import AnswerFailedError
from adapters.stream import read_event, says_error
from adapters.types import Body, EventKind, FailureKind, Operation, Usage
from adapters.usage import read_usage
from gateway.pipeline.stream_out import DONE
from gateway.upstream.base import UpstreamResponse
from gateway.upstream.sse import SseSplitter

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_MAX_REFUSAL_BYTES: Final = 256 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


class Whole(msgspec.Struct, eq=False):
    """An answer in one piece, and what it says was used."""

    body: bytes
    usage: Usage | None
    answer: answers.Answer | None = None
    """The parts of an answer that had to be looked at more closely."""

    @property
    def text_bytes(self) -> int:
        """How much text it holds, as far as that may have to be known."""
        return answers.text_bytes(self.answer) if self.answer is not None else 0


def read_whole(
    body: bytes,
    response: UpstreamResponse,
    adapter: Adapter,
    operation: Operation,
    needs: AnswerNeeds | None = None,
    request: Body | None = None,
) -> Whole:
    """A good answer as OpenAI would have said it; one that came as a stream is put together.

    *body* is that of *response*, as it came; *needs* and *request* are what was prepared, and from what. Raises
    `ProviderError` for an answer that is none.
    """
    if needs is None and (usage := adapter.repair.plain(body, operation)) is not None:
        return Whole(body, usage)
    provider = adapter.target.provider
    content_type = response.headers.get("content-type", "").lower()
    body = body.lstrip().removeprefix(_BOM)
    if content_type.startswith("text/event-stream") or begins_stream(body):
        body = _folded(body, adapter, operation, needs, request or {})
    elif content_type.startswith("text/html"):
        raise _not_an_answer(provider, content_type)
    try:
        body, answer = _read(body, operation)
    except msgspec.DecodeError:
        raise ProviderError(FailureKind.MALFORMED, f"{provider} answered with something that is not JSON.") from None
    if answers.has_error(answer):
        raise adapter.error(answers.error_in(answer))
    if not answers.is_complete(answer, operation):
        raise _no_answer(body, adapter)
    try:
        if needs is not None and needs.dimensions:
            _check_length(answer, needs.dimensions, provider)
        body = adapter.repair.whole(body, answer, operation, needs, request or {})
        usage = read_usage(answer.usage)
        if needs is not None and needs.call is not None and lacks_call(body, needs.call):
            raise _no_call(provider, needs.call, usage)
        return Whole(body, usage, answer)
    except AnswerFailedError as failed:
        raise adapter.error(failed.fields) from None
    except MissingVectorsError as missing:
        raise ProviderError(FailureKind.EMPTY, f"{provider} answered with {missing}.") from None
    except answers.UnreadableError:
        raise ProviderError(FailureKind.MALFORMED, f"{provider} answered with something of no known shape.") from None


def _read(body: bytes, operation: Operation) -> tuple[bytes, answers.Answer]:
    """*body* as JSON, and what is in it; `msgspec.DecodeError` where it is none."""
    try:
        return body, answers.read_answer(body)
    except msgspec.DecodeError:
        # A vector with a number that is none is worth nothing; any other answer is worth the same.
        finite = with_finite_numbers(body) if operation is not Operation.EMBEDDINGS else None
        if finite is None:
            raise
        return finite, answers.read_answer(finite)


def _check_length(answer: answers.Answer, dimensions: int, provider: str) -> None:
    found = lengths(answer.data)
    if found != {dimensions}:
        said = ", ".join(map(str, sorted(found)))
        raise unsupported("dimensions", provider, f"Its vectors have {said} numbers, whatever is asked for.")


def _no_call(provider: str, name: str, usage: Usage | None) -> ProviderError:
    called = f"calling {name!r}" if name else "any tool call"
    return ProviderError(
        FailureKind.INVALID_OUTPUT,
        f"{provider} answered without {called}, which 'tool_choice' asks for.",
        code=TOOL_CALL_MISSING,
        tries=2,
        used=usage,
    )


def said_nothing(provider: str, usage: Usage | None) -> ProviderError:
    """The failure of an answer that came to its end without a word: asked again, the same target would say the same."""
    return ProviderError(FailureKind.EMPTY, f"{provider} answered without a word.", tries=1, used=usage)


def _no_answer(body: bytes, adapter: Adapter) -> ProviderError:
    """The failure of a 200 that holds neither an answer nor an ``error``: an error of another shape, or nothing."""
    if says_error(body):
        return adapter.error(read_error(body) or ErrorFields())
    return ProviderError(FailureKind.EMPTY, f"{adapter.target.provider} answered without an answer in it.")


async def read_as_stream(response: UpstreamResponse, operation: Operation, provider: str) -> bytes:
    """The body of an answer that does not say it is a stream, where one was asked for, as one."""
    refuse_page(response, provider)
    return as_stream(await response.read(MAX_ANSWER_BYTES), operation, provider)


def refuse_page(response: UpstreamResponse, provider: str) -> None:
    """Raise for a page of HTML, which is no answer whatever stands in it."""
    content_type = response.headers.get("content-type", "").lower()
    if content_type.startswith("text/html"):
        raise _not_an_answer(provider, content_type)


def begins_stream(body: bytes) -> bool:
    """Whether *body* begins as streams of events do, and nothing else."""
    return body.startswith(_FIELDS)


def as_stream(body: bytes, operation: Operation, provider: str) -> bytes:
    """An answer in one piece where a stream was asked for (U27), as a stream of few events; a stream as it is."""
    body = body.lstrip().removeprefix(_BOM)
    if begins_stream(body):
        return body
    try:
        body, answer = _read(body, operation)
        if answers.has_error(answer):
            payloads = [b'{"error":' + bytes(answer.error) + b"}"]
        elif answers.is_complete(answer, operation):
            payloads = answers.unfold(body, operation)
        elif says_error(body):
            payloads = [body]
        else:
            raise ProviderError(FailureKind.EMPTY, f"{provider} answered without an answer in it.")
    except (msgspec.DecodeError, answers.UnreadableError):
        raise ProviderError(FailureKind.MALFORMED, f"{provider} answered with something that is not JSON.") from None
    return b"".join(b"data: %b\n\n" % payload for payload in payloads) + DONE


async def read_refusal(response: UpstreamResponse) -> bytes:
    """What a refusal says, or nothing where that cannot be read: its status says enough."""
    try:
        return await response.read(_MAX_REFUSAL_BYTES)
    except ProviderError:
        return b""


def is_stream(response: UpstreamResponse) -> bool:
    """Whether *response* says that it is a stream of events."""
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


def _folded(body: bytes, adapter: Adapter, operation: Operation, needs: AnswerNeeds | None, request: Body) -> bytes:
    splitter = SseSplitter()
    repair = adapter.repair.stream(operation, needs, request)
    payloads: list[bytes] = []
    try:
        for event in (*splitter.feed(body), splitter.close()):
            if event is None or not event.data or event.data == b"[DONE]":
                continue
            if event.data.lstrip().startswith(b":"):
                continue  # a comment, sent as data
            read = read_event(event.raw, event.data)
            if read.kind is EventKind.ERROR or event.name == "error":
                raise adapter.error(read_error(event.data) or ErrorFields())
            payloads += [mended.data for mended in repair.take(read)]
        payloads += [mended.data for mended in repair.end(done=True)]
        if repair.usage is not None:
            payloads.append(repair.usage.data)
        return answers.fold(payloads, operation, usage_per_choice=adapter.usage_per_choice)
    except AnswerFailedError as failed:
        raise adapter.error(failed.fields) from None
    except (answers.UnreadableError, *answers.SHAPE_ERRORS):
        told = f"{adapter.target.provider} answered with a stream that cannot be read."
        raise ProviderError(FailureKind.MALFORMED, told) from None


def _not_an_answer(provider: str, content_type: str) -> ProviderError:
    return ProviderError(
        FailureKind.WRONG_CONTENT_TYPE,
        f"{provider} answered with {content_type.partition(';')[0][:40]} instead of JSON. Check its base_url.",
    )
