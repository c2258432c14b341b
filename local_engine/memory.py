"""What memory a model will take, by its file and its options; and whether that much is free."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from local_engine.errors import NotEnoughMemoryError
from local_engine.free_memory import free_memory, size
from local_engine.gguf import Header, UnreadableGgufError, parts, read_header

_log = logging.getLogger(__name__)

# A block is of 32 numbers, with one or two of 16 bits for all of them.
_BLOCK_BYTES: Final = {"q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}
KV_TYPES: Final = {"f32": 4.0, "f16": 2.0, "bf16": 2.0} | {name: count / 32 for name, count in _BLOCK_BYTES.items()}
"""The number formats of the cache for keys and values, with the bytes a number takes (ggml's block sizes)."""

# The interpreter with the library in it; measured with xllamacpp 2026.10, November 2026.
_PROCESS_BYTES: Final = 60 << 20
# Every so many layers one looks at the whole context, the others at a window of it. Where the file does not say, it is
# in the code of the architecture (ggml-org/llama.cpp, src/llama-model.cpp, read 2026-11-30).
_WINDOW_PATTERNS: Final = {"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "exaone4": 4, "olmo2": 4}


class MemoryCheck(StrEnum):
    """What is done about a model that is not going to fit."""

    REFUSE = "refuse"
    WARN = "warn"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Load:
    """The options that memory depends on."""

    path: Path
    context: int
    slots: int
    batch: int
    kv_type: str = "f16"
    prompt_cache_bytes: int = 0
    adapters: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes, by what they are for. It is an estimate: within a tenth for ordinary models."""

    weights: int
    kv_cache: int
    buffers: int
    prompt_cache: int
    """What prompts of earlier requests may come to with time; the rest is taken at once."""

    @property
    def at_once(self) -> int:
        return self.weights + self.kv_cache + self.buffers

    @property
    def at_most(self) -> int:
        return self.at_once + self.prompt_cache


def estimate(load: Load) -> Need:
    """What *load* is going to take; `UnreadableGgufError` or `OSError` for a file that does not say."""
    header = read_header(load.path)
    weights = sum(path.stat().st_size for path in (*parts(load.path), *load.adapters))
    cached = _kv_cache(header, load)
    # Encoders keep nothing for later, so there is no prompt to cache either.
    return Need(weights, cached, _PROCESS_BYTES + _compute(header, load), load.prompt_cache_bytes if cached else 0)


def check_memory(load: Load, check: MemoryCheck, name: str) -> None:
    """Raise `NotEnoughMemoryError`, or warn, when *load* takes more than is free; nothing when unknown.

    What it takes only with time is worth a warning at most.
    """
    if check is MemoryCheck.OFF:
        return
    free = free_memory()
    if free is None:
        return
    try:
        need = estimate(load)
        if need.at_most <= free.available:
            return
        message = f"{describe(load, need)}; {free.describe()}. {_advice(load, free.available)}"
    except (OSError, UnreadableGgufError):
        return  # whoever loads it will say what is wrong with it
    if check is MemoryCheck.REFUSE and need.at_once > free.available:
        raise NotEnoughMemoryError(f"{message}, or load it all the same with `memory_check: warn`")
    _log.warning("the local engine %s: %s", name, message)


def describe(load: Load, need: Need) -> str:
    """The figures in a sentence."""
    slots = f"{load.slots} slots of {load.context} tokens" if load.slots > 1 else f"{load.context} tokens"
    terms = [f"weights {size(need.weights)}", f"context {size(need.kv_cache)} for {slots}"]
    terms += [f"buffers {size(need.buffers)}"]
    later = f" and with time {size(need.prompt_cache)} more for its prompt cache" if need.prompt_cache else ""
    return f"the model takes about {size(need.at_once)} ({', '.join(terms)}){later}"


def _advice(load: Load, available: int) -> str:
    """The first of the changes that make it fit; the last of them takes all of them together."""
    for said, smaller in _smaller(load):
        need = estimate(smaller)
        if need.at_most <= available:
            return f"With {said} it takes {size(need.at_most)}"
    return "It fits with no context: take a model with fewer parameters or bits, or free some memory"


def _smaller(load: Load) -> Iterator[tuple[str, Load]]:
    context, slots = load.context, load.slots
    if load.prompt_cache_bytes:
        yield "`prompt_cache: 0`", replace(load, prompt_cache_bytes=0)
    if KV_TYPES[load.kv_type] > KV_TYPES["q8_0"]:
        yield "`kv_type: q8_0`", replace(load, kv_type="q8_0")
    while slots > 1:
        slots //= 2
        yield f"`slots: {slots}`", replace(load, slots=slots)
    while context > 1024:
        context //= 2
        yield f"`context: {context}`", replace(load, context=context)
    least = replace(load, context=context, slots=1, prompt_cache_bytes=0)
    yield f"`slots: 1`, `prompt_cache: 0` and `context: {context}`", least


def _kv_cache(header: Header, load: Load) -> int:
    blocks = header.own_number("block_count") or 0
    if header.own("attention.causal") is False:
        return 0
    everything = load.context * load.slots
    window = header.own_number("attention.sliding_window")
    cells = [everything] * blocks
    if window:
        few = min(everything, (window + load.batch) * load.slots)
        cells = [few if local else everything for local in _in_window(header, blocks)]
    widths = _widths(header, blocks)
    return round(KV_TYPES[load.kv_type] * sum(cell * width for cell, width in zip(cells, widths, strict=True)))


def _widths(header: Header, blocks: int) -> list[int]:
    """Numbers that are kept of a token, in each layer: its key and its value."""
    compressed = header.own_number("attention.kv_lora_rank")
    if compressed:
        return [compressed + (header.own_number("rope.dimension_count") or 0)] * blocks
    heads = header.for_each("attention.head_count", blocks)
    grouped = header.own("attention.head_count_kv") is not None
    kv_heads = header.for_each("attention.head_count_kv", blocks) if grouped else heads
    width = header.own_number("embedding_length") or 0
    found = []
    for all_heads, kept in zip(heads, kv_heads, strict=True):
        one = width // all_heads if all_heads else 0
        key = header.own_number("attention.key_length") or one
        value = header.own_number("attention.value_length") or one
        found.append(kept * (key + value))
    return found


def _in_window(header: Header, blocks: int) -> list[bool]:
    """Whether each layer keeps only a window of the context."""
    pattern = header.own("attention.sliding_window_pattern")
    if isinstance(pattern, tuple) and len(pattern) >= blocks:
        return [bool(local) for local in pattern[:blocks]]
    every = pattern if isinstance(pattern, int) and pattern else _WINDOW_PATTERNS.get(header.architecture)
    # A model whose pattern is unknown is taken to keep everything.
    return [every is not None and (block + 1) % every != 0 for block in range(blocks)]


def _compute(header: Header, load: Load) -> int:
    """Intermediate results: of the widest layers for a batch of tokens, and the logits of one token for each slot."""
    vocabulary = header.lengths.get("tokenizer.ggml.tokens", 0)
    width = header.own_number("embedding_length") or 0
    inner = max(header.for_each("feed_forward_length", 1))
    return 4 * (load.batch * (2 * inner + 6 * width) + load.slots * vocabulary)
