"""What the client gets of one attempt at a stream: held back until its first content, final from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from adapters.errors import ProviderError
from adapters.stream import StreamEvent
from adapters.stream_edits import with_model
from adapters.types import EventKind, FailureKind, Operation, Usage
from gateway.pipeline.call import Attempt, Call
from gateway.pipeline.stream_out import DONE, StreamOut
from gateway.pipeline.whole import said_nothing

_MAX_HELD_BYTES: Final = 262_144
_FINISH, _OTHER, _USAGE = EventKind.FINISH, EventKind.OTHER, EventKind.USAGE


class StreamBuffer:
    """The events of an attempt that are due to the client, and what they have come to.

    It knows which choices have ended and why, and whether the attempt is *committed*: once the client may have seen
    content of it, no other target can take over. How an event came to be is nothing to it.
    """

    def __init__(
        self, call: Call, attempt: Attempt, out: StreamOut, now: Callable[[], float], model: bytes | None
    ) -> None:
        """*model*, JSON, replaces the upstream's own name in all events, where the configuration asks for that."""
        self.committed = False
        """Content is on its way to the client, or the whole of an answer without any."""
        self.batch: list[bytes] = []
        """What waits to be written, as bytes of whole events: the same list all the time. Events of which nothing has
        to be known, because they are like those before them, may be put into it as they are."""
        self._call, self._attempt, self._out, self._now = call, attempt, out, now
        self._model = model
        self._held_bytes = 0
        self._finished: set[int] = set()
        """The choices that have ended."""
        self._cut = False
        """A choice has ended for another reason than that all is said."""

    def put(self, event: StreamEvent) -> None:
        """Add an event that is as it should be. Raises `ProviderError` when too much comes before any content."""
        if event.finish_reasons:
            self._finished.update(index for index, _ in event.finish_reasons)
            self._cut = self._cut or any(reason != "stop" for _, reason in event.finish_reasons)
        if self._model is not None:
            event = with_model(event, self._model)
        self.batch.append(event.raw)
        if not self.committed:
            kind = event.kind
            if kind is _OTHER or kind is _USAGE or (kind is _FINISH and self._call.others):
                self._held_bytes += len(event.raw)
                if self._held_bytes > _MAX_HELD_BYTES:
                    told = f"{self._attempt.target.provider} sent too much before any content."
                    raise ProviderError(FailureKind.TOO_LARGE, told)
            else:
                self.committed = True
                self._attempt.first_content = self._now()

    def put_all(self, events: Iterable[StreamEvent]) -> None:
        """Add *events*, which are as they should be."""
        for event in events:
            self.put(event)

    def flush(self) -> None:
        """Write what waits, where that is anything, and committed."""
        batch, out, now = self.batch, self._out, self._now()
        data = batch[0] if len(batch) == 1 else b"".join(batch)
        batch.clear()
        if out.opened:
            out.exchange.write(data)
            out.written_at = now
        else:
            out.write(data, now)

    # The end of the answer

    def is_complete(self) -> bool:
        """Whether all choices have ended that were asked for."""
        return len(self._finished) >= self._call.choices

    def commit_end(self, used: Usage | None) -> None:
        """Take the answer for over as it is, content or none; *used* is what the upstream counts for it.

        Raises `ProviderError` INTERRUPTED for one that broke off, and EMPTY for one without a word, where another
        target can still be asked for some.
        """
        call, attempt = self._call, self._attempt
        if len(self._finished) < call.choices and not (self.committed and self._finished):
            told = f"{attempt.target.provider} ended the answer without a finish_reason."
            raise ProviderError(FailureKind.INTERRUPTED, told)
        if not self.committed:
            if call.others and call.operation is Operation.CHAT and not attempt.text_bytes and not self._cut:
                raise said_nothing(attempt.target.provider, used)
            self.committed = True
            attempt.first_content = self._now()

    def end(self) -> None:
        """Write what waits and the end of the stream, after `commit_end`."""
        self.batch.append(DONE)
        self._out.write(b"".join(self.batch), self._now())
        self._out.end()
