"""Chats and text completions: from a request that was found in order to its answer, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from adapters.simulator.asked import Asked, Reader
from adapters.simulator.chunks import Chunk, ChunkWriter
from adapters.simulator.facts import Body, holds_all
from adapters.simulator.refusal import Refusals
from adapters.simulator.reply import reply_to, say, text_of
from adapters.simulator.served import Served
from adapters.simulator.spoken import Speaker, Spoken
from adapters.simulator.tokens import count_tokens, tokens_of
from adapters.simulator.usage import Counted, UsageWriter
from adapters.simulator.whole import WholeChat, completion_choice
from adapters.spec import ProviderSpec
from adapters.types import Operation
from adapters.vocabulary import Overflow

_EPOCH: Final = date(1970, 1, 1)
_DAY_SECONDS: Final = 86_400
_PER_MESSAGE: Final = 3

_MOST: Final = 128
"""Choices of an answer, and candidates of a token."""


@dataclass(frozen=True, slots=True)
class Generation:
    """An answer, ready to be written either way."""

    choices: Sequence[Spoken]
    asked: Asked
    counted: Counted
    head: Mapping[str, Any]
    body: Body
    operation: Operation
    request_id: str


class Generator:
    """Answers for one provider."""

    def __init__(self, spec: ProviderSpec, refusals: Refusals) -> None:
        self._spec = spec
        self._refusals = refusals
        self._reader = Reader(spec)
        self._usage = UsageWriter(spec)
        self._chat = WholeChat(spec)
        self.chunk_writer = ChunkWriter(spec, self._usage)
        self._speaker = Speaker(spec)

    def generate(self, body: Body, operation: Operation, served: Served, number: str, request_id: str) -> Generation:
        """Answer a *body* that was checked; raises `RefusedError` for one that does not fit the context."""
        asked = self._reader.read(body, operation, served)
        self._check_numbers(asked)
        chat = operation is Operation.CHAT
        prompts = [] if chat else self._prompts(body)
        counts = [_count(asked.messages)] if chat else [count_tokens(prompt) for prompt in prompts]
        rooms = [self._room(count, asked.limit, body, served) for count in counts]
        if chat:
            replies = [self._speaker.speak(reply_to(asked), asked, served.canonical, number, rooms[0])]
        else:
            replies = [self._complete(prompt, body, asked, room) for prompt, room in zip(prompts, rooms, strict=True)]
        spoken = [one for one in replies for _ in range(asked.n)]
        counted = Counted(
            sum(min(count, served.context_window) for count in counts),
            sum(one.token_count for one in spoken),
            sum(one.thought_tokens for one in spoken),
        )
        return Generation(spoken, asked, counted, self._head(asked, served, number, chat), body, operation, request_id)

    def _check_numbers(self, asked: Asked) -> None:
        """Nobody writes a thousand choices, whatever its file says of the most it takes."""
        for name, value in (("n", asked.n), ("logprobs", asked.logprobs), ("max_tokens", asked.limit)):
            if value is None or (isinstance(value, int) and 0 <= value <= (_MOST if name != "max_tokens" else value)):
                continue
            raise self._refusals.invalid(f"'{name}' : {json.dumps(value)[:80]} is no number for it", name)

    def whole(self, made: Generation) -> tuple[dict[str, Any], dict[str, str]]:
        """The decoded body of a whole answer, and headers that go with it."""
        chat = made.operation is Operation.CHAT
        write = self._chat.choice if chat else completion_choice
        answer = {
            **made.head,
            "object": "chat.completion" if chat else "text_completion",
            "choices": [write(index, spoken, made.asked) for index, spoken in enumerate(made.choices)],
            "usage": self._usage.usage(made.counted),
            **self._usage.beside(made.counted, made.request_id),
        }
        return answer, self._usage.header_values(made.counted)

    def chunks(self, made: Generation) -> Iterator[Chunk]:
        """The chunks of a stream."""
        return self.chunk_writer.chunks(
            made.head, made.choices, made.asked, made.counted, made.request_id, made.body, made.operation
        )

    def _room(self, count: int, limit: int | None, body: Body, served: Served) -> int:
        """How many tokens the answer may have."""
        context = self._spec.context
        wanted = limit if limit is not None else 1
        most = served.max_output_tokens or served.context_window
        if count + wanted <= served.context_window:
            return min(limit if limit is not None else most, served.context_window - count)
        asks_for_error = bool(context.ask_for_error) and holds_all(body, context.ask_for_error)
        if context.overflow is Overflow.ERROR or asks_for_error:
            raise self._refusals.too_long(count + wanted, served.context_window)
        if context.overflow is Overflow.LOWERS_LIMIT:
            return max(1, served.context_window - count)
        return limit if limit is not None else most

    def _prompts(self, body: Body) -> list[str]:
        prompt = body.get("prompt")
        prompts = prompt if isinstance(prompt, list) else [prompt]
        if prompts and all(isinstance(one, int) and not isinstance(one, bool) for one in prompts):
            prompts = [prompts]
        texts = [" ".join(map(str, one)) if isinstance(one, list) else one for one in prompts]
        found = [text for text in texts if isinstance(text, str)]
        if not found or len(found) != len(texts):
            raise self._refusals.invalid("Missing required parameter: 'prompt'.", "prompt")
        if len(found) > 1 and "several_prompts" in self._spec.endpoints[Operation.COMPLETIONS].lacks:
            raise self._refusals.invalid("'prompt' : value must be a string", "prompt")
        return found

    def _complete(self, prompt: str, body: Body, asked: Asked, limit: int) -> Spoken:
        spoken = self._speaker.cut(say(prompt), asked.stops, limit)
        echoed = tokens_of(prompt) if body.get("echo") is True else []
        return replace(spoken, tokens=[*echoed, *spoken.tokens]) if echoed else spoken

    def _head(self, asked: Asked, served: Served, number: str, chat: bool) -> dict[str, Any]:
        head: dict[str, Any] = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{number}",
            "created": (self._spec.as_of - _EPOCH).days * _DAY_SECONDS,
            "model": served.id,
            "system_fingerprint": f"fp_{(asked.seed or 0) & 0xFFFFFFFF:08x}",
        }
        if asked.service_tier is not None:
            head["service_tier"] = asked.service_tier
        return head


def _count(messages: Sequence[Mapping[str, Any]]) -> int:
    calls = sum(count_tokens(json.dumps(message["tool_calls"])) for message in messages if message.get("tool_calls"))
    return calls + sum(_PER_MESSAGE + count_tokens(text_of(message.get("content"))) for message in messages)
