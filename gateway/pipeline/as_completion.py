"""A chat's stream told as that of a text completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from adapters.answers import SHAPE_ERRORS
from adapters.errors import ProviderError
from adapters.shapes.prompt_as_chat import text_chunk
from gateway.pipeline.stream_out import DONE
from gateway.upstream.base import BodySink, UpstreamResponse
from gateway.upstream.sse import SseSplitter


class AsCompletion:
    """Implements `UpstreamResponse` around the stream of a chat."""

    def __init__(self, chat: UpstreamResponse, heard: Callable[[], None]) -> None:
        """*heard* is called for events that say something, though not to the client: a model that thinks is at work."""
        self.status: int = chat.status
        self.headers: Mapping[str, str] = chat.headers
        self._chat = chat
        self._heard = heard
        self._splitter = SseSplitter()
        self._sink: BodySink | None = None

    async def read(self, limit_bytes: int) -> bytes:
        raise NotImplementedError("it can only be streamed")

    def stream(self, sink: BodySink) -> None:
        self._sink = sink
        self._chat.stream(self)

    def pause(self) -> None:
        self._chat.pause()

    def resume(self) -> None:
        self._chat.resume()

    def close(self) -> None:
        self._sink = None
        self._chat.close()

    # As the sink of the chat

    def feed(self, data: bytes) -> None:
        told: list[bytes] = []
        for event in self._splitter.feed(data):
            if event.data == b"[DONE]":
                told.append(DONE)
            elif event.data:
                told += self._told(event.raw, event.data)
        if told and self._sink is not None:
            self._sink.feed(b"".join(told))

    def _told(self, raw: bytes, payload: bytes) -> list[bytes]:
        try:
            chunk = text_chunk(payload)
        except SHAPE_ERRORS:
            return [raw]  # for the relay to count
        if chunk is None:
            self._heard()
            return []
        return [b"data: %b\n\n" % chunk]

    def finish(self, error: ProviderError | None) -> None:
        if self._sink is not None:
            self._sink.finish(error)
