"""An answer that does not say of itself that it is a stream, where one was asked for: its first bytes tell."""

from __future__ import annotations

from typing import Final

from adapters.errors import ProviderError
from adapters.types import FailureKind, Operation
from gateway.pipeline.relay import StreamRelay
from gateway.pipeline.whole import MAX_ANSWER_BYTES, as_stream, begins_stream

# Every field's name is told by then.
_ENOUGH: Final = 8


class Unmarked:
    """The sink between such an answer and its *relay*.

    Events are passed on as they come, under whatever content type (xiaoliu10/claude-code-router-next#45,
    vllm-project/vllm-ascend#6985); all else is taken for an answer in one piece.
    """

    def __init__(self, relay: StreamRelay, operation: Operation, provider: str) -> None:
        self._relay, self._operation, self._provider = relay, operation, provider
        self._held = bytearray()
        self._flows: bool | None = None
        """Whether it is a stream, once that is known."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body."""
        if self._flows:
            self._relay.feed(data)
            return
        self._held += data
        if self._flows is None:
            begun = bytes(self._held[:64]).lstrip()
            if begins_stream(begun):
                self._flows = True
                self._relay.feed(bytes(self._held))
                self._held.clear()
            elif len(begun) >= _ENOUGH:
                self._flows = False
        if len(self._held) > MAX_ANSWER_BYTES:
            self._held.clear()
            self._relay.stop(ProviderError(FailureKind.TOO_LARGE, f"{self._provider} answered with too much."))

    def finish(self, error: ProviderError | None) -> None:
        """The body is over, in good order or not."""
        if not self._flows and error is None:
            try:
                self._relay.feed(as_stream(bytes(self._held), self._operation, self._provider))
            except ProviderError as failure:
                self._relay.stop(failure)
        self._relay.finish(error)
