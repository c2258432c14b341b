"""A log line is queued at once; a stream that blocks or breaks costs lines, never time."""

from __future__ import annotations

import io
import os
import threading
import time

from gateway.telemetry.sink import LineSink


class Gate(io.StringIO):
    """A stream whose writes wait until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = threading.Event()
        self.reached = threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        self.opened.wait(30)
        return super().write(text)


def test_lines_come_out_in_order() -> None:
    out = io.StringIO()
    sink = LineSink(out)
    for number in range(2_000):
        sink.put(f"{number}\n")
    sink.close()

    assert out.getvalue().split() == [str(number) for number in range(2_000)]
    assert sink.dropped == 0


def test_a_blocked_stream_drops_the_oldest_lines_and_counts_them() -> None:
    out = Gate()
    sink = LineSink(out, queue_lines=10)
    sink.put("first\n")
    assert out.reached.wait(10)

    began = time.monotonic()
    for number in range(25):
        sink.put(f"{number}\n")
    assert time.monotonic() - began < 5
    out.opened.set()
    sink.close(10)

    assert out.getvalue().split() == ["first", *(str(number) for number in range(15, 25))]
    assert sink.dropped == 15


def test_closing_gives_up_on_a_stream_that_stays_blocked() -> None:
    out = Gate()
    sink = LineSink(out)
    sink.put("never written\n")

    began = time.monotonic()
    sink.close(0.05)

    assert time.monotonic() - began < 5
    out.opened.set()


def test_a_reader_that_has_gone_ends_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = open(writer, "w", buffering=1)  # noqa: SIM115
    sink = LineSink(stream)
    sink.put("into the void\n")
    sink.close()

    assert sink.dropped == 1
    # The text layer still holds the line; nobody wants it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), writer)
    stream.close()


def test_a_line_that_cannot_be_made_says_so_and_the_next_one_is_written() -> None:
    out = io.StringIO()
    sink = LineSink(out)
    sink.put(lambda: str(1 // 0))
    sink.put(lambda: "fine\n")
    sink.close()

    first, second = out.getvalue().splitlines()
    assert "ZeroDivisionError" in first
    assert second == "fine"


def test_entries_of_many_lines_count_as_many_as_they_have() -> None:
    out = Gate()
    sink = LineSink(out, queue_lines=10)
    sink.put("first\n")
    assert out.reached.wait(10)

    for batch in range(4):
        sink.put("".join(f"{batch}.{number}\n" for number in range(4)), 4)
    assert sink.dropped == 8
    sink.put("".join(f"large.{number}\n" for number in range(20)), 20)
    out.opened.set()
    sink.close(10)

    # An entry that is larger than the queue drops all others, and stays.
    assert out.getvalue().split() == ["first", *(f"large.{number}" for number in range(20))]
    assert sink.dropped == 16
