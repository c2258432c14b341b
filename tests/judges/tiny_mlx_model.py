"""Runs in an environment with mlx-lm: writes a model with random weights, small enough for any machine.

It talks nonsense, and talks it by mlx-lm's own server, which is all that is asked of it.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
TEMPLATE = (
    "{% if tools %}<|im_start|>tools\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
START, END = "<|im_start|>", "<|im_end|>"


def write_tokenizer(folder: Path) -> int:
    """A token for each byte and two more; returns how many there are."""
    tokenizers: Any = importlib.import_module("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([START, END])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(vocabulary) + 2


def write_weights(folder: Path, size: int) -> None:
    mlx: Any = importlib.import_module("mlx.core")
    flatten: Any = importlib.import_module("mlx.utils").tree_flatten
    llama: Any = importlib.import_module("mlx_lm.models.llama")
    config = {**CONFIG, "vocab_size": size, "eos_token_id": size - 1, "bos_token_id": size - 2}
    (folder / "config.json").write_text(json.dumps(config))
    mlx.random.seed(7)
    model = llama.Model(llama.ModelArgs.from_dict(config))
    mlx.save_safetensors(str(folder / "model.safetensors"), dict(flatten(model.parameters())), {"format": "mlx"})


def main() -> None:
    folder = Path(json.load(sys.stdin)["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    size = write_tokenizer(folder)
    write_weights(folder, size)
    sys.stdout.write(json.dumps({"tokens": size}) + "\n")


main()
