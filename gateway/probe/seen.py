"""An answer as the probe looks at it: taken or refused, and what was in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from gateway.upstream.sse import SseSplitter

# About our key, our account or the server's load: they say nothing of the request.
_OF_US: Final = frozenset((401, 402, 403, 407, 408, 409, 412, 424, 425, 429, 498, 499))
_NOT_BUILT: Final = 501
_SHOWN: Final = 120


@dataclass(frozen=True)
class Seen:
    """The answer to one request of the battery, whole or streamed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    streamed: bool = False
    also_refusals: tuple[int, ...] = ()
    """Further statuses by which this provider says that a request is not in order."""

    @property
    def taken(self) -> bool:
        """The request was answered, and not with an error that pretends to be none."""
        return self.status == 200 and self.error is None and bool(self.choices or not self.streamed)

    @property
    def refused(self) -> bool:
        """The provider does not take such a request, which a try at a better time would not change."""
        if self.status == 200:
            return self.error is not None
        if self.status in self.also_refusals or self.status == _NOT_BUILT:
            return True
        return 400 <= self.status < 500 and self.status not in _OF_US

    @property
    def words(self) -> str:
        """What became of it, in a few words."""
        if self.taken:
            return "taken"
        if self.refused:
            return f"refused with {self.status}"
        return f"HTTP {self.status}" if self.status else "no answer"

    @cached_property
    def decoded(self) -> Any:
        """The whole body; None where it is no JSON, as a stream is not."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @cached_property
    def payloads(self) -> list[bytes]:
        """The data of each event of a stream."""
        splitter = SseSplitter()
        events = [*splitter.feed(self.body), *splitter.feed(b"\n\n")]
        return [event.data for event in events if event.data is not None]

    @cached_property
    def chunks(self) -> list[dict[str, Any]]:
        """The events of a stream that are JSON objects; of a whole answer, the answer."""
        if not self.streamed:
            return [self.decoded] if isinstance(self.decoded, dict) else []
        found: list[dict[str, Any]] = []
        for payload in self.payloads:
            try:
                decoded = msgspec.json.decode(payload)
            except msgspec.DecodeError:
                continue
            if isinstance(decoded, dict):
                found.append(decoded)
        return found

    @cached_property
    def error(self) -> Any:
        """An error in a body that came with 200."""
        return next((chunk["error"] for chunk in self.chunks if chunk.get("error")), None)

    @cached_property
    def choices(self) -> list[dict[str, Any]]:
        """All choices, of all chunks."""
        found = [chunk.get("choices") for chunk in self.chunks]
        return [one for choices in found if isinstance(choices, list) for one in choices if isinstance(one, dict)]

    @property
    def messages(self) -> Iterator[dict[str, Any]]:
        """The messages of the choices, or their pieces in a stream."""
        for choice in self.choices:
            message = choice.get("message") or choice.get("delta")
            if isinstance(message, dict):
                yield message

    @cached_property
    def text(self) -> str:
        """The text of all choices."""
        pieces = (message.get("content") for message in self.messages)
        return "".join(piece for piece in pieces if isinstance(piece, str))

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        """The tool calls, or their pieces in a stream."""
        found = [message.get("tool_calls") for message in self.messages]
        return [call for calls in found if isinstance(calls, list) for call in calls if isinstance(call, dict)]

    @property
    def finish_reasons(self) -> list[str]:
        return [reason for one in self.choices if isinstance(reason := one.get("finish_reason"), str)]

    @property
    def cut_off(self) -> bool:
        """It ended at its limit, so what is missing may only not have come yet."""
        return "length" in self.finish_reasons

    @property
    def usage(self) -> dict[str, Any]:
        """The last usage that stands in its usual place."""
        found = [usage for chunk in self.chunks if isinstance(usage := chunk.get("usage"), dict)]
        return found[-1] if found else {}

    def complaint(self) -> str:
        """The start of an error's text, for messages."""
        return " ".join(self.body[:400].decode("utf-8", "replace").split())[:_SHOWN]
