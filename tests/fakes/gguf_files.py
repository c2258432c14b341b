"""Real models in small files: llama.cpp loads and runs them, though what they were taught is noise.

Made here rather than fetched, since what is tested is what the engine does with a kind of model, not what that knows:
a decoder, an encoder for embeddings, a ranker, and adapters (LoRA) for decoders. The layout is that of GGUF version 3
(ggml-org/ggml, docs/gguf.md, read 2026-11-30).
"""

from __future__ import annotations

import math
import random
import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ALIGNMENT = 32
_F32 = 0
_UINT32, _FLOAT32, _BOOL, _STRING, _ARRAY, _INT32 = 4, 6, 7, 8, 9, 5
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_CONTEXT = 512
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:"

Shape = tuple[int, ...]
"""The length of a row first, as GGUF has it."""


def write_gguf(
    path: Path, metadata: Mapping[str, Any], shapes: Mapping[str, Shape], *, spread: float = 0.3, seed: int = 1
) -> Path:
    """A file with *metadata* and tensors of noise around 0, or around 1 for the weights of norms; always the same."""
    chance = random.Random(seed)
    tensors: dict[str, tuple[Shape, bytes]] = {}
    for name, shape in shapes.items():
        around = 1.0 if name.endswith("norm.weight") else 0.0
        numbers = array("f", (chance.gauss(around, spread) for _ in range(math.prod(shape))))
        tensors[name] = shape, numbers.tobytes()
    return write_tensors(path, metadata, tensors)


def write_tensors(path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, tuple[Shape, bytes]]) -> Path:
    """A file with *metadata* and *tensors* of 32-bit numbers."""
    infos, data = b"", bytearray()
    for name, (shape, numbers) in tensors.items():
        infos += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, _F32, len(data))
        data += numbers
        data += b"\0" * (-len(data) % _ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_string(key) + _typed(value) for key, value in metadata.items()) + infos
    path.write_bytes(head + b"\0" * (-len(head) % _ALIGNMENT) + data)
    return path


def write_decoder(path: Path, own: Mapping[str, Any] | None = None, *, width: int = 128, blocks: int = 2) -> Path:
    """A model that generates: a byte is a token, and so is each of a few marks. *own* is further metadata."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *([_BYTE] * 256)]
    shapes: dict[str, Shape] = {"token_embd.weight": (width, len(tokens)), "output_norm.weight": (width,)}
    for block in range(blocks):
        shapes |= _decoder_block(f"blk.{block}", width)
    return write_gguf(
        path,
        {
            "general.architecture": "llama",
            "llama.context_length": _CONTEXT,
            "llama.embedding_length": width,
            "llama.block_count": blocks,
            "llama.feed_forward_length": 2 * width,
            "llama.rope.dimension_count": width // 4,
            "llama.attention.head_count": 4,
            "llama.attention.head_count_kv": 4,
            "llama.attention.layer_norm_rms_epsilon": 1e-5,
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.scores": [0.0] * len(tokens),
            "tokenizer.ggml.token_type": kinds,
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.chat_template": TEMPLATE,
            **(own or {}),
        },
        shapes,
    )


def write_encoder(path: Path, *, pooling: int = 2, width: int = 32, ranks: bool = False) -> Path:
    """A model that makes vectors; *pooling* as llama.cpp counts: 1 mean, 2 the first token's. With *ranks*, scores."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    # A word begins with a mark; what goes on inside one has none.
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"▁{letter}" for letter in letters), *letters]
    kinds = [_CONTROL, _UNKNOWN, *([_CONTROL] * 3), *([_NORMAL] * 52)]
    shapes: dict[str, Shape] = {
        "token_embd.weight": (width, len(tokens)),
        "token_types.weight": (width, 2),
        "position_embd.weight": (width, _CONTEXT),
        "token_embd_norm.weight": (width,),
        "token_embd_norm.bias": (width,),
        **_encoder_block("blk.0", width),
    }
    if ranks:
        shapes |= {"cls.weight": (width, width), "cls.bias": (width,)}
        shapes |= {"cls.output.weight": (width, 1), "cls.output.bias": (1,)}
    return write_gguf(
        path,
        {
            "general.architecture": "bert",
            "bert.context_length": _CONTEXT,
            "bert.embedding_length": width,
            "bert.block_count": 1,
            "bert.feed_forward_length": 2 * width,
            "bert.attention.head_count": 2,
            "bert.attention.layer_norm_epsilon": 1e-6,
            "bert.attention.causal": False,
            "bert.pooling_type": 4 if ranks else pooling,
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": kinds,
            "tokenizer.ggml.token_type_count": 2,
            "tokenizer.ggml.padding_token_id": 0,
            "tokenizer.ggml.unknown_token_id": 1,
            "tokenizer.ggml.cls_token_id": 2,
            "tokenizer.ggml.bos_token_id": 2,
            "tokenizer.ggml.seperator_token_id": 3,
            "tokenizer.ggml.eos_token_id": 3,
            "tokenizer.ggml.mask_token_id": 4,
        },
        shapes,
    )


def write_lora(
    path: Path, *, width: int = 128, architecture: str = "llama", spread: float = 1.0, seed: int = 1
) -> Path:
    """An adapter for a decoder of *width*, strong enough to change what that says."""
    return write_gguf(
        path,
        {
            "general.architecture": architecture,
            "general.type": "adapter",
            "adapter.type": "lora",
            "adapter.lora.alpha": 16.0,
        },
        {"blk.0.attn_q.weight.lora_a": (width, 4), "blk.0.attn_q.weight.lora_b": (4, width)}
        | {"blk.0.attn_output.weight.lora_a": (width, 4), "blk.0.attn_output.weight.lora_b": (4, width)},
        spread=spread,
        seed=seed,
    )


def _decoder_block(name: str, width: int) -> dict[str, Shape]:
    square = {f"{name}.attn_{part}.weight": (width, width) for part in ("q", "k", "v", "output")}
    norms = {f"{name}.{part}_norm.weight": (width,) for part in ("attn", "ffn")}
    wide = {f"{name}.ffn_{part}.weight": (width, 2 * width) for part in ("gate", "up")}
    return {**square, **norms, **wide, f"{name}.ffn_down.weight": (2 * width, width)}


def _encoder_block(name: str, width: int) -> dict[str, Shape]:
    weights = {f"{name}.attn_{part}": (width, width) for part in ("q", "k", "v", "output")}
    weights |= {f"{name}.ffn_up": (width, 2 * width), f"{name}.ffn_down": (2 * width, width)}
    shapes: dict[str, Shape] = {}
    for part, shape in weights.items():
        shapes |= {f"{part}.weight": shape, f"{part}.bias": (shape[1],)}
    for part in ("attn_output_norm", "layer_output_norm"):
        shapes |= {f"{name}.{part}.weight": (width,), f"{name}.{part}.bias": (width,)}
    return shapes


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: Any) -> bytes:
    return struct.pack("<I", _type_of(value)) + _bare(value)


def _bare(value: Any) -> bytes:
    match value:
        case bool():
            return struct.pack("<?", value)
        case int():
            return struct.pack("<I", value)
        case float():
            return struct.pack("<f", value)
        case str():
            return _string(value)
        case Sequence():
            inner = _INT32 if type(value[0]) is int else _type_of(value[0])
            return struct.pack("<IQ", inner, len(value)) + b"".join(_bare(item) for item in value)
    raise TypeError(f"{value!r} has no place in a GGUF file")


def _type_of(value: Any) -> int:
    kinds = {bool: _BOOL, int: _UINT32, float: _FLOAT32, str: _STRING}
    return kinds.get(type(value), _ARRAY)
