"""Tokens of a prompt, by the tokenizer and the template of the model that an engine has loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from local_engine import probe
from local_engine.probe import Address

Text: TypeAlias = "str | Sequence[int]"


async def count_chat(address: Address, body: Mapping[str, Any]) -> int:
    """Tokens that the chat request *body* comes to, tools and all; `EngineCrashedError` for one that it refuses."""
    answer = await probe.ask(address, "/v1/chat/completions/input_tokens", dict(body))
    return int(answer["input_tokens"])


async def count_texts(address: Address, texts: Sequence[Text]) -> int:
    """Tokens of all *texts* together, with the marks that each begins with; tokens are counted as they are."""
    return sum([await _count_text(address, text) for text in texts])


async def _count_text(address: Address, text: Text) -> int:
    if not isinstance(text, str):
        return len(text)
    answer = await probe.ask(address, "/tokenize", {"content": text, "add_special": True, "parse_special": True})
    return len(answer["tokens"])
