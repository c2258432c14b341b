"""Who takes part in a comparison, and the processes they run as."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from benchmarks import nginx, ours, peers
from benchmarks.bodies import Body, body
from benchmarks.contestant import Via
from benchmarks.measurements import full_rate, measurements
from benchmarks.processes import Running
from benchmarks.workshop import Upstreams
from gateway.catalog import Catalog
from gateway.settings import load_settings

# Any file will do for the authority: none of these connect.
UPSTREAMS = Upstreams(9_001, 9_002, Path(__file__))


def running(folder: Path, program: str) -> Running:
    command = [sys.executable, "-c", program]
    return Running(command, cpus=os.sched_getaffinity(0), folder=folder, env={}, log=folder / "log")


def until(true: Callable[[], bool]) -> None:
    """Return when what the system has been asked for has happened."""
    give_up = time.monotonic() + 10
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def printed(folder: Path) -> list[str]:
    """What the program has printed, once there is a line of it."""
    log = folder / "log"
    until(lambda: "\n" in log.read_text())
    return log.read_text().split()


def state_of(pid: int) -> str:
    """The letter that the system has for it; none once it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


PARENT_AND_CHILD = """
import subprocess, sys
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def test_a_paused_gateway_stands_still_with_all_it_has_started(tmp_path: Path) -> None:
    process = running(tmp_path, PARENT_AND_CHILD)
    [child] = printed(tmp_path)

    process.pause()

    try:
        until(lambda: {state_of(process.pid), state_of(int(child))} == {"T"})
    finally:
        process.stop()


def test_stopping_ends_what_it_has_started_too(tmp_path: Path) -> None:
    process = running(tmp_path, PARENT_AND_CHILD)
    [child] = printed(tmp_path)

    process.stop()

    assert process.ended
    until(lambda: state_of(int(child)) in ("Z", ""))


def test_a_gateway_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    program = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\nsignal.pause()"
    process = running(tmp_path, program)
    printed(tmp_path)

    process.stop(patience=0.1)

    assert process.ended


def test_time_on_a_core_and_memory_are_told(tmp_path: Path) -> None:
    process = running(
        tmp_path, "import signal\nx = bytearray(b'x' * 30_000_000)\nprint(sum(x), flush=True)\nsignal.pause()"
    )
    printed(tmp_path)
    spent, memory = process.cpu_seconds(), process.memory_mb()
    process.stop()

    assert spent > 0.01
    assert memory > 25
    assert process.cpu_seconds() == 0


@pytest.mark.parametrize("made", [ours.plain_config, ours.full_config])
def test_the_configurations_of_this_gateway_are_accepted(made: object, tmp_path: Path) -> None:
    assert callable(made)
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(made(tmp_path, UPSTREAMS)))

    catalog = Catalog.build(load_settings(path, environ={}))

    for via in Via:
        model = catalog.resolve(via.value)
        assert model is not None
        assert len(model.targets) == 2


def test_with_everything_on_a_model_is_found_by_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(ours.full_config(tmp_path, UPSTREAMS)))

    assert Catalog.build(load_settings(path, environ={})).resolve("team-a-tls") is not None


def test_nginx_passes_on_to_both_upstreams(tmp_path: Path) -> None:
    plan = nginx.plan(tmp_path, 9_000, UPSTREAMS)
    if plan is None:
        pytest.skip("nginx is not installed")

    config = (tmp_path / "nginx.conf").read_text()
    assert {"127.0.0.1:9000", "127.0.0.1:9001", "127.0.0.1:9002"} <= set(re.findall(r"[\d.]+:\d+", config))
    assert set(plan.routes) == set(Via)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with every peer installed in it, as far as can be told without running it."""
    folder = tmp_path / "peers"
    for name, entry in peers.described().items():
        environment = folder / f"{name}-environment"
        program = environment / ("bin" if "/" not in entry["program"] else "") / entry["program"]
        program.parent.mkdir(parents=True)
        program.touch()
        packages = environment / "lib" / "python3.12" / "site-packages"
        (packages / name).mkdir(parents=True)
        (packages / f"{entry.get('distribution', 'x')}-1.2.3.dist-info").mkdir()
    return folder


@pytest.mark.parametrize("name", peers.described())
def test_a_peer_that_is_installed_can_be_started(name: str, place: Path, tmp_path: Path) -> None:
    plan = peers.plan(name, tmp_path, 9_100, UPSTREAMS, [place])

    assert plan is not None
    written = "".join(path.read_text() for path in (tmp_path / name).iterdir())
    told = " ".join([*plan.command, *plan.headers, *plan.env.values(), written])
    assert str(place / f"{name}-environment") in told
    assert "9001" in told
    assert not re.search(r"<\w+>", told)
    assert plan.port == 9_100 or plan.port_file is not None
    assert plan.version in ("1.2.3", "")
    assert (plan.key is not None) is peers.described()[name]["key"]


def test_a_place_may_be_told_from_where_the_command_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.parent)

    found = peers.find(peers.described()["smg"], [Path(place.name)])

    assert found == place / "smg-environment" / "bin" / "smg"


def test_a_peer_that_is_not_installed_is_left_out(tmp_path: Path) -> None:
    assert peers.plan("tensorzero", tmp_path, 9_100, UPSTREAMS, [tmp_path]) is None


def test_bodies_are_as_large_as_their_names_say() -> None:
    sizes = {kind: len(body(kind, "a-model")) for kind in Body}

    assert 330 < sizes[Body.SMALL] < 370
    assert 24_000 < sizes[Body.LARGE] < 26_000


def test_every_measurement_has_a_name_of_its_own() -> None:
    names = [step.name for step in measurements((500, 1_000))]

    assert len(names) == len(set(names))
    assert {"streams 500", "streams 1000"} <= set(names)


def test_the_full_rate_is_what_the_streams_bring_when_nothing_holds_them_up() -> None:
    assert full_rate(500) == pytest.approx(500 * 67 / 3.2)
