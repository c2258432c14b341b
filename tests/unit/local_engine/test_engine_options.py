from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from local_engine import options
from local_engine.options import ChildOptions, EngineConfig, default_threads, usable_cpus


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("slots", lambda count: EngineConfig(model="m", slots=count)),
        ("threads", lambda count: EngineConfig(model="m", threads=count)),
        ("context", lambda count: EngineConfig(model="m", context=count)),
    ],
)
def test_a_resource_of_zero_is_refused_by_name(field: str, make: Callable[[int], EngineConfig]) -> None:
    with pytest.raises(ValueError, match=field):
        make(0)


def test_the_options_of_a_child_survive_the_pipe() -> None:
    sent = ChildOptions(
        model_path="/m/ü.gguf",
        name="m",
        context=512,
        slots=2,
        threads=1,
        cache_ram_mib=0,
        host="/run/e.sock",
        batch_threads=2,
        batch=64,
        pools=True,
        adapters=(("/m/a.gguf", 0.5),),
    )

    assert ChildOptions.from_json(sent.to_json()) == sent
    assert "\n" not in sent.to_json()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs CPU affinity")
def test_only_cpus_this_process_may_use_are_counted() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert usable_cpus() == 1
        assert default_threads() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(("limit", "cpus"), [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None)])
def test_the_cpu_limit_of_a_container_counts(
    limit: str, cpus: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlimited = usable_cpus()
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(options, "_CGROUP_CPU_LIMIT", tmp_path / "cpu.max")

    assert usable_cpus() == (cpus or unlimited)
