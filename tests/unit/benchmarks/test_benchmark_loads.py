"""The load of the benchmark: what it counts, and when wrk does the job."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from benchmarks.answers import EVENTS, write_scripts
from benchmarks.bodies import Body, body
from benchmarks.loads import Address, Load, Loader, LoadFailedError, read_seen
from benchmarks.workshop import running_mock

PATH = "/v1/chat/completions"


@pytest.fixture
def loader(workshop: Path, tmp_path: Path) -> Loader:
    return Loader(workshop / "load", None, os.sched_getaffinity(0), tmp_path)


def test_whole_answers_are_counted_and_timed(loader: Loader, mock_port: int) -> None:
    seen = loader.run(Address(mock_port, PATH), body(Body.SMALL, "m"), Load(2, 0.2))

    assert seen.answers > 2
    assert seen.wrong == 0
    assert seen.events == 0
    assert 0 < seen.latency_p50 <= seen.latency_p99


def test_the_events_of_streams_are_counted(loader: Loader, mock_port: int) -> None:
    seen = loader.run(Address(mock_port, PATH), body(Body.STREAM, "m"), Load(2, 0.2, streams=True))

    assert seen.fewest_events == EVENTS + 3
    assert seen.events >= seen.answers * (EVENTS + 3)
    assert seen.first_p99 > 0


def test_events_of_a_stream_that_has_not_ended_count_too(loader: Loader, mock_port: int) -> None:
    slow = body(Body.STREAM, "m", gap=10_000_000)

    seen = loader.run(Address(mock_port, PATH), slow, Load(5, 0.2, streams=True))

    assert (seen.answers, seen.events) == (0, 5)


def test_a_rate_is_not_exceeded(loader: Loader, mock_port: int) -> None:
    seen = loader.run(Address(mock_port, PATH), body(Body.SMALL, "m"), Load(4, 0.5, rate=40))

    assert 0 < seen.answers <= 21


def test_an_answer_with_an_error_is_refused_and_kept_as_a_sample(
    loader: Loader, workshop: Path, tmp_path: Path
) -> None:
    error = b'{"error":"no"}'
    head = b"HTTP/1.1 503 Busy\r\ncontent-length: %d\r\n\r\n" % len(error)
    write_scripts(tmp_path / "scripts", {"text": [head + error]})
    with running_mock(workshop / "mock", tmp_path, os.sched_getaffinity(0)) as port:
        seen = loader.run(Address(port, PATH), body(Body.SMALL, "m"), Load(1, 0.1))

    assert seen.refused == seen.answers > 0
    assert seen.sample == "{ error : no }"


def test_a_body_without_a_length_ends_with_the_connection(loader: Loader, workshop: Path, tmp_path: Path) -> None:
    # The mock goes on to the next request on the same connection: to the load all of it is one body, which never ends.
    write_scripts(tmp_path / "scripts", {"text": [b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\ndata: 2\n\n"]})
    with running_mock(workshop / "mock", tmp_path, os.sched_getaffinity(0)) as port:
        seen = loader.run(Address(port, PATH), body(Body.SMALL, "m"), Load(1, 0.1))

    assert (seen.answers, seen.events) == (0, 2)


def test_a_port_without_a_listener_breaks_every_request(loader: Loader) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        seen = loader.run(Address(bound.getsockname()[1], PATH), body(Body.SMALL, "m"), Load(2, 0.1))

    assert seen.answers == 0
    assert seen.broken > 0


def test_a_load_that_says_nothing_has_failed() -> None:
    with pytest.raises(LoadFailedError, match="cannot connect"):
        read_seen("", "cannot connect")


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_wrk_tells_in_the_same_words(workshop: Path, mock_port: int, tmp_path: Path) -> None:
    loader = Loader(workshop / "load", shutil.which("wrk"), os.sched_getaffinity(0), tmp_path)

    seen = loader.run(Address(mock_port, PATH, ("Authorization: Bearer x",)), body(Body.SMALL, "m"), Load(2, 1))

    assert seen.answers > 2
    assert seen.wrong == 0
    assert seen.latency_p50 > 0


def test_of_what_a_load_prints_the_last_line_counts() -> None:
    seen = read_seen('Running 1s test\n{"answers": 7, "refused": 2, "broken": 1, "seconds": 1.0}\n')

    assert (seen.answers, seen.wrong, seen.first_p99) == (7, 3, -1.0)
