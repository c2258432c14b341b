"""The events of a stream, with a provider's own habits: where usage stands, how it begins, what ends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from adapters.simulator.asked import Asked
from adapters.simulator.spoken import Spoken
from adapters.simulator.usage import Counted, UsageWriter
from adapters.simulator.whole import logprobs_of, reasoning_field_names
from adapters.spec import ProviderSpec
from adapters.types import Operation
from adapters.vocabulary import FinishReason, UsagePlace

_ARGUMENT_PIECE: Final = 6


class Chunk(NamedTuple):
    """One event to be, and whether a model had to think up a token for it."""

    payload: dict[str, Any]
    is_token: bool = False


class ChunkWriter:
    """Writes the streams of one provider."""

    def __init__(self, spec: ProviderSpec, usage: UsageWriter) -> None:
        streaming = spec.streaming
        self._usage = usage
        self._fields = reasoning_field_names(spec, streamed=True)
        self._place = streaming.usage
        self._unasked = streaming.usage_unasked
        self._beside = streaming.usage_field.split(".") if streaming.usage_field is not None else []
        self._usage_object = streaming.usage_object
        self._whole_calls = streaming.whole_tool_calls
        rule = spec.params.get("logprobs")
        self._logprobs_shape = rule.stream_shape if rule is not None else None
        self._progress = streaming.progress_field
        self._progress_param = streaming.progress_param
        self._per_choice = spec.usage.per_choice
        self._may_miss_stop = spec.finish_reason.missing is FinishReason.STOP
        marker = streaming.done_marker or ""
        self.done = f"{marker}\n\n".encode() if marker.startswith("data:") else b""
        self.comment = b": keep-alive\n\n" if streaming.comments else b""

    def chunks(
        self,
        head: Mapping[str, Any],
        choices: Sequence[Spoken],
        asked: Asked,
        counted: Counted,
        request_id: str,
        body: Mapping[str, Any],
        operation: Operation = Operation.CHAT,
    ) -> Iterator[Chunk]:
        """Every chunk in order, without the marker at the end."""
        chat = operation is Operation.CHAT
        base = {**head, "object": "chat.completion.chunk" if chat else "text_completion"}
        if self._progress is not None and self._progress_param is not None and body.get(self._progress_param) is True:
            told = {self._progress: {"total": counted.prompt, "processed": counted.prompt}}
            yield Chunk({**base, "choices": [_choice(0, {"delta": {"role": "assistant", "content": None}})], **told})
        if chat:
            for index, spoken in enumerate(choices):
                content = None if spoken.calls else ""
                yield Chunk({**base, "choices": [_choice(index, {"delta": {"role": "assistant", "content": content}})]})
        for written, (index, members) in enumerate(self._pieces(choices, asked, chat), 1):
            payload = {**base, "choices": [_choice(index, members)]}
            if asked.usage_on_each:
                payload["usage"] = self._usage.usage(Counted(counted.prompt, written))
            yield Chunk(payload, True)
        yield from self._ends(base, choices, asked, counted, request_id, chat)

    def _pieces(self, choices: Sequence[Spoken], asked: Asked, chat: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """The parts of all choices, taking turns."""
        queues = [list(self._pieces_of(spoken, asked, chat)) for spoken in choices]
        for turn in range(max(map(len, queues), default=0)):
            for index, queue in enumerate(queues):
                if turn < len(queue):
                    yield index, queue[turn]

    def _pieces_of(self, spoken: Spoken, asked: Asked, chat: bool) -> Iterator[dict[str, Any]]:
        if spoken.reasoning:
            for word in _words(spoken.reasoning):
                yield {"delta": dict.fromkeys(self._fields, word)}
        for token in spoken.tokens:
            members: dict[str, Any] = {"delta": {"content": token}} if chat else {"text": token}
            if asked.logprobs is not None:
                members["logprobs"] = logprobs_of([token], asked, self._logprobs_shape)
            yield members
        for number, call in enumerate(spoken.calls):
            yield from self._call(number, call)

    def _call(self, number: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        function = call["function"]
        if self._whole_calls:
            yield {"delta": {"tool_calls": [{"index": number, **call}]}}
            return
        begun = {**call, "function": {"name": function["name"], "arguments": ""}}
        yield {"delta": {"tool_calls": [{"index": number, **begun}]}}
        arguments = function["arguments"]
        for at in range(0, len(arguments), _ARGUMENT_PIECE):
            # OpenAI tells the type once; some providers' own clients insist on it each time, and none minds.
            piece = {
                "index": number,
                "type": "function",
                "function": {"arguments": arguments[at : at + _ARGUMENT_PIECE]},
            }
            yield {"delta": {"tool_calls": [piece]}}

    def _ends(
        self,
        base: Mapping[str, Any],
        choices: Sequence[Spoken],
        asked: Asked,
        counted: Counted,
        request_id: str,
        chat: bool,
    ) -> Iterator[Chunk]:
        usage = self._usage.usage(counted)
        told = asked.include_usage or self._unasked
        for index, spoken in enumerate(choices):
            members: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
            reason = spoken.finish_reason
            lost = self._may_miss_stop and reason == FinishReason.STOP
            payload: dict[str, Any] = {**base, "choices": [_choice(index, members, None if lost else reason)]}
            if index == len(choices) - 1:
                payload |= self._last(counted, usage if told else None, request_id)
            yield Chunk(payload)
        # A field of its own spares the chunk of its own, unless that is asked for.
        own_chunk = asked.include_usage or (self._unasked and not self._beside)
        if self._place is not UsagePlace.OWN_CHUNK or not own_chunk:
            return
        end: dict[str, Any] = {**base, "object": self._usage_object or base["object"], "choices": []}
        if not self._per_choice:
            yield Chunk({**end, "usage": usage})
            return
        for spoken in choices:
            yield Chunk({**end, "usage": self._usage.usage(Counted(counted.prompt, spoken.token_count))})

    def _last(self, counted: Counted, usage: dict[str, Any] | None, request_id: str) -> dict[str, Any]:
        """What stands on the last chunk with a choice."""
        members = self._usage.beside(counted, request_id)
        if usage is not None and self._beside:
            inner = members
            for name in self._beside[:-1]:
                inner = inner.setdefault(name, {})
            inner[self._beside[-1]] = {**usage, **(inner.get(self._beside[-1]) or {})}
        if usage is not None and self._place is UsagePlace.FINISH_CHUNK:
            members["usage"] = usage
        return members


def _choice(index: int, members: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": index, **members, "logprobs": members.get("logprobs"), "finish_reason": reason}


def _words(text: str) -> list[str]:
    return [word if number == 0 else f" {word}" for number, word in enumerate(text.split(" "))]
