"""How much a model takes by its file, how much is free, and what is said when that is not enough."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from local_engine import memory
from local_engine.errors import NotEnoughMemoryError
from local_engine.free_memory import FreeMemory, free_memory
from local_engine.memory import Load, MemoryCheck, Need, check_memory, estimate
from tests.fakes.gguf_files import write_decoder, write_encoder, write_gguf

MIB = 1 << 20
TOKENS = ["a"] * 1000


def model(path: Path, architecture: str = "llama", own: Mapping[str, object] | None = None) -> Path:
    """Metadata of a model of 32 layers, without any tensors."""
    values: dict[str, object] = {"block_count": 32, "embedding_length": 4096, "feed_forward_length": 14336}
    values |= {"attention.head_count": 32, "attention.head_count_kv": 8, **(own or {})}
    metadata = {f"{architecture}.{key}": value for key, value in values.items() if value is not None}
    return write_gguf(path, {"general.architecture": architecture, **metadata, "tokenizer.ggml.tokens": TOKENS}, {})


def kv_bytes(path: Path, *, context: int = 8192, slots: int = 1, batch: int = 64, kv_type: str = "f16") -> int:
    return estimate(Load(path, context, slots, batch, kv_type)).kv_cache


def test_the_cache_grows_with_context_slots_and_the_width_of_its_numbers(tmp_path: Path) -> None:
    path = model(tmp_path / "m.gguf")  # keys and values of 8 heads of 128 numbers in 32 layers: 128 KiB a token

    assert kv_bytes(path) == 8192 * 128 * 1024
    assert kv_bytes(path, context=4096, slots=3) == 3 * 4096 * 128 * 1024
    assert kv_bytes(path, kv_type="f32") == 2 * kv_bytes(path)
    assert kv_bytes(path, kv_type="q8_0") == kv_bytes(path) * 34 // 64
    assert kv_bytes(path, kv_type="q4_0") == kv_bytes(path) * 18 // 64


def test_without_grouped_heads_all_are_kept(tmp_path: Path) -> None:
    assert kv_bytes(model(tmp_path / "m.gguf", own={"attention.head_count_kv": None})) == 4 * 8192 * 128 * 1024


def test_layers_of_a_hybrid_that_keep_nothing_count_for_nothing(tmp_path: Path) -> None:
    path = model(tmp_path / "m.gguf", "jamba", {"attention.head_count_kv": [8, 0, 0, 0] * 8})

    assert kv_bytes(path) == 8192 * 128 * 1024 // 4


def test_a_head_may_be_of_another_width_than_the_models(tmp_path: Path) -> None:
    path = model(tmp_path / "m.gguf", own={"attention.key_length": 256, "attention.value_length": 64})

    assert kv_bytes(path) == 8192 * 32 * 8 * (256 + 64) * 2


def test_compressed_keys_and_values_are_counted_compressed(tmp_path: Path) -> None:
    own = {"attention.kv_lora_rank": 512, "rope.dimension_count": 64}

    assert kv_bytes(model(tmp_path / "m.gguf", "deepseek2", own)) == 8192 * 32 * 576 * 2


@pytest.mark.parametrize(
    ("architecture", "pattern", "whole"),
    [
        ("gemma3", None, 5),
        ("gpt-oss", None, 16),
        ("other", [True, False] * 16, 16),
        ("other", 4, 8),
        ("other", None, 32),
    ],
)
def test_layers_that_see_a_window_keep_a_window(tmp_path: Path, architecture: str, pattern: object, whole: int) -> None:
    own = {"attention.sliding_window": 960, "attention.sliding_window_pattern": pattern}
    path = model(tmp_path / "m.gguf", architecture, own)
    a_token = 4096

    assert kv_bytes(path, context=8192) == a_token * (whole * 8192 + (32 - whole) * 1024)
    assert kv_bytes(path, context=512) == a_token * 32 * 512


def test_an_encoder_keeps_nothing(tmp_path: Path) -> None:
    need = estimate(Load(write_encoder(tmp_path / "e.gguf"), 512, 4, 512, prompt_cache_bytes=256 * MIB))

    assert (need.kv_cache, need.prompt_cache) == (0, 0)


def test_weights_are_those_of_all_parts_and_adapters(tmp_path: Path) -> None:
    first = model(tmp_path / "m-00001-of-00002.gguf")
    (tmp_path / "m-00002-of-00002.gguf").write_bytes(bytes(5000))
    (tmp_path / "lora.gguf").write_bytes(bytes(700))

    need = estimate(Load(first, 512, 1, 64, adapters=(tmp_path / "lora.gguf",)))

    assert need.weights == first.stat().st_size + 5700


def limited(monkeypatch: pytest.MonkeyPatch, available: int, limit: int | None = None) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: FreeMemory(available, limit))


def test_a_model_that_does_not_fit_is_refused_with_figures_and_what_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, 700 * MIB, 1024 * MIB)
    load = Load(model(tmp_path / "m.gguf"), 8192, 2, 64)

    with pytest.raises(NotEnoughMemoryError) as refusal:
        check_memory(load, MemoryCheck.REFUSE, "m")

    message = str(refusal.value)
    assert "about 2.2 GB" in message
    assert "context 2.1 GB for 2 slots of 8192 tokens" in message
    assert "734 MB are free, within the container's limit of 1.1 GB" in message
    assert "With `context: 2048` it takes" in message
    assert "`memory_check: warn`" in message


@pytest.mark.parametrize(
    ("available", "advice"),
    [
        (1400, "`kv_type: q8_0`"),
        (1120, "`slots: 1`"),
        (250, "`slots: 1`, `prompt_cache: 0`"),
        (100, "fewer parameters"),
    ],
)
def test_the_advice_is_the_least_change_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, available: int, advice: str
) -> None:
    limited(monkeypatch, available * MIB)

    with pytest.raises(NotEnoughMemoryError, match=advice.replace("`", ".")):
        check_memory(Load(model(tmp_path / "m.gguf"), 8192, 2, 64), MemoryCheck.REFUSE, "m")


def test_a_warning_takes_the_place_of_the_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limited(monkeypatch, MIB)
    load = Load(write_decoder(tmp_path / "m.gguf"), 512, 1, 64)

    check_memory(load, MemoryCheck.OFF, "m")
    assert not caplog.records
    check_memory(load, MemoryCheck.WARN, "m")
    assert "the local engine m: the model takes about" in caplog.text


def test_a_prompt_cache_that_may_grow_too_large_is_no_reason_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limited(monkeypatch, 200 * MIB)
    load = Load(write_decoder(tmp_path / "m.gguf"), 512, 1, 64, prompt_cache_bytes=256 * MIB)

    check_memory(load, MemoryCheck.REFUSE, "m")

    assert "and with time 268 MB more for its prompt cache" in caplog.text
    assert "With `prompt_cache: 0` it takes" in caplog.text


def test_what_fits_or_cannot_be_known_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_decoder(tmp_path / "m.gguf")
    limited(monkeypatch, 1 << 40)
    check_memory(Load(path, 512, 1, 64), MemoryCheck.REFUSE, "m")

    limited(monkeypatch, 0)
    path.write_bytes(b"GGUF")
    check_memory(Load(path, 512, 1, 64), MemoryCheck.REFUSE, "m")
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    check_memory(Load(write_decoder(path), 512, 1, 64), MemoryCheck.REFUSE, "m")


def test_a_need_is_the_sum_of_its_parts() -> None:
    assert (Need(1, 2, 3, 4).at_once, Need(1, 2, 3, 4).at_most) == (6, 10)


class Machine:
    """A folder that looks like the root of one."""

    def __init__(self, root: Path, available_kb: int) -> None:
        self.root = root
        self.write("proc/meminfo", f"MemTotal: 99 kB\nMemAvailable:   {available_kb} kB\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def group(self, folder: str, limit: str, used: int, cache: int) -> None:
        self.write(f"{folder}/memory.max", limit)
        self.write(f"{folder}/memory.current", str(used))
        self.write(f"{folder}/memory.stat", f"anon 1\ninactive_file {cache}\n")


def test_without_a_container_the_machine_decides(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2048)
    assert free_memory(tmp_path) == FreeMemory(2048 * 1024)

    machine.write("proc/self/cgroup", "0::/user.slice\n")
    machine.group("sys/fs/cgroup/user.slice", "max", 100, 0)
    assert free_memory(tmp_path) == FreeMemory(2048 * 1024)


def test_the_tightest_of_the_groups_around_binds_and_dropped_files_are_free(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 10_000_000)
    machine.write("proc/self/cgroup", "0::/pod/app\n")
    machine.group("sys/fs/cgroup/pod/app", str(900 * MIB), 500 * MIB, 100 * MIB)
    machine.group("sys/fs/cgroup/pod", str(600 * MIB), 550 * MIB, 50 * MIB)

    assert free_memory(tmp_path) == FreeMemory(100 * MIB, 600 * MIB)


def test_in_a_container_the_outer_path_is_not_there_and_the_root_is_meant(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 10_000_000)
    machine.write("proc/self/cgroup", "0::/docker/abc\n")
    machine.group("sys/fs/cgroup", str(512 * MIB), 500 * MIB, 0)

    assert free_memory(tmp_path) == FreeMemory(12 * MIB, 512 * MIB)


def test_control_groups_of_the_first_version_are_read_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 10_000_000)
    machine.write("proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/box\n")
    machine.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", str(400 * MIB))
    machine.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", str(300 * MIB))
    machine.write("sys/fs/cgroup/memory/box/memory.stat", f"total_inactive_file {100 * MIB}\n")

    assert free_memory(tmp_path) == FreeMemory(200 * MIB, 400 * MIB)


def test_a_system_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None
