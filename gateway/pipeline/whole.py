"""An answer in one piece, read and checked before anybody believes it."""

from __future__ import annotations

from typing import Final

import msgspec

from adapters import answers
from adapters.adapter import Adapter
from adapters.errors import ProviderError
from adapters.types import FailureKind, Operation
from gateway.pipeline.stream_out import DONE
from gateway.upstream.base import UpstreamResponse
from gateway.upstream.sse import SseSplitter

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024


async def read_whole(
    response: UpstreamResponse, adapter: Adapter, operation: Operation
) -> tuple[bytes, answers.Answer]:
    """Body and parts of a good answer; one that came as a stream is put together. `ProviderError` for any other."""
    body = await response.read(MAX_ANSWER_BYTES)
    provider = adapter.target.provider
    content_type = response.headers.get("content-type", "").lower()
    if content_type.startswith("text/event-stream"):
        body = _folded(body, operation, provider)
    elif content_type.startswith("text/html"):
        raise _not_an_answer(provider, content_type)
    try:
        answer = answers.read_answer(body)
    except msgspec.DecodeError:
        raise ProviderError(FailureKind.MALFORMED, f"{provider} answered with something that is not JSON.") from None
    if answers.has_error(answer):
        raise adapter.error(answers.error_in(answer))
    if not answers.is_complete(answer, operation):
        raise ProviderError(FailureKind.EMPTY, f"{provider} answered without an answer in it.")
    return body, answer


async def read_as_stream(response: UpstreamResponse, operation: Operation, provider: str) -> bytes:
    """An answer in one piece where a stream was asked for (U27), as a stream of few events."""
    body = await response.read(MAX_ANSWER_BYTES)
    content_type = response.headers.get("content-type", "").lower()
    if content_type.startswith("text/html"):
        raise _not_an_answer(provider, content_type)
    try:
        answer = answers.read_answer(body)
        if answers.has_error(answer):
            payloads = [b'{"error":' + bytes(answer.error) + b"}"]
        elif answers.is_complete(answer, operation):
            payloads = answers.unfold(body, operation)
        else:
            raise ProviderError(FailureKind.EMPTY, f"{provider} answered without an answer in it.")
    except (msgspec.DecodeError, answers.UnreadableError):
        raise ProviderError(FailureKind.MALFORMED, f"{provider} answered with something that is not JSON.") from None
    return b"".join(b"data: %b\n\n" % payload for payload in payloads) + DONE


def is_stream(response: UpstreamResponse) -> bool:
    """Whether *response* says that it is a stream of events."""
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


def _folded(body: bytes, operation: Operation, provider: str) -> bytes:
    splitter = SseSplitter()
    events = [*splitter.feed(body), splitter.close()]
    payloads = [event.data for event in events if event is not None and event.data and event.data != b"[DONE]"]
    try:
        return answers.fold(payloads, operation)
    except answers.UnreadableError:
        raise ProviderError(FailureKind.MALFORMED, f"{provider} answered with a stream that cannot be read.") from None


def _not_an_answer(provider: str, content_type: str) -> ProviderError:
    return ProviderError(
        FailureKind.WRONG_CONTENT_TYPE,
        f"{provider} answered with {content_type.partition(';')[0][:40]} instead of JSON. Check its base_url.",
    )
