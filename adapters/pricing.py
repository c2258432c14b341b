"""What tokens cost: integers only, rounded up once per charge."""

from __future__ import annotations

from typing import Final

import msgspec

from adapters.types import Body, LongPrice, Price, Usage

PICO_IN_NANO = 1000
DEFAULT_OUTPUT = 4096
"""Tokens that an answer without a limit of its own is expected to have at most."""

_OF_THE_PROMPT: Final = ("messages", "prompt", "input", "tools")
# As tokens about 1,570. Assumed: what providers count for a large image is about that, or less.
_IMAGE_BYTES: Final = 4096


class _Part(msgspec.Struct):
    image_url: msgspec.Raw = msgspec.Raw(b"")


class _Message(msgspec.Struct):
    content: list[_Part] | str | None = None


def cost_nusd(price: Price | None, *requests: Usage) -> int | None:
    """Nano-USD for what *requests* used, or None when the price is unknown (which is not the same as free).

    Each request has a prompt of its own, whose length may decide what its tokens cost.
    """
    if price is None:
        return None
    if len(requests) == 1 and not price.long:
        return -(-_pico(price, requests[0]) // PICO_IN_NANO)
    pico = sum(_pico(_for_prompt(price, usage.prompt_tokens), usage) for usage in requests)
    return -(-pico // PICO_IN_NANO)


def _for_prompt(price: Price, tokens: int) -> Price | LongPrice:
    for long in reversed(price.long):
        if tokens > long.above_tokens:
            return long
    return price


def _pico(price: Price | LongPrice, usage: Usage) -> int:
    pico = usage.prompt_tokens * price.input_ptoken + usage.completion_tokens * price.output_ptoken
    if usage.cached_tokens and price.cached_input_ptoken is not None:
        pico += usage.cached_tokens * (price.cached_input_ptoken - price.input_ptoken)
    return pico


def estimated_tokens(byte_count: int) -> int:
    """Tokens in *byte_count* bytes of text where no tokenizer is at hand: a third, plus 15 %, rounded up."""
    return -(-byte_count * 115 // 300)


def prompt_bytes(body: Body) -> int:
    """Size of what a model has to read, for estimates; an image counts as one, however many bytes it came in."""
    size = sum(len(bytes(body[name])) for name in _OF_THE_PROMPT if name in body)
    messages = bytes(body.get("messages", b""))
    if len(messages) <= _IMAGE_BYTES or b'"image_url"' not in messages:
        return size
    try:
        conversation = msgspec.json.decode(messages, type=list[_Message])
    except msgspec.DecodeError:
        return size
    parts = [part for message in conversation if isinstance(message.content, list) for part in message.content]
    return size - sum(max(0, len(bytes(part.image_url)) - _IMAGE_BYTES) for part in parts)


def expected_usage(prompt_bytes: int, *, asked: int | None, most: int | None, choices: int, prompts: int = 1) -> Usage:
    """What a request may come to: *asked* is its own limit for an answer, *most* the target's.

    Without a limit of its own an answer counts with `DEFAULT_OUTPUT` tokens. *prompts* is how often the prompt is
    paid for.
    """
    limits = [limit for limit in (asked or DEFAULT_OUTPUT, most) if limit is not None]
    return Usage(estimated_tokens(prompt_bytes) * prompts, min(limits) * choices, estimated=True)
