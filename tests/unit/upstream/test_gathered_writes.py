"""What is written in one turn of the loop leaves at its end, whole, in order, and not at all where that is too late."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Iterable
from typing import Any

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.gathered import GatheredTransport, Outbox
from gateway.upstream.base import Origin
from gateway.upstream.connection import Connection, StaleConnectionError
from gateway.upstream.pool import OriginPool

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


class Wire(asyncio.Transport):
    """A transport that notes what is asked of it."""

    keeps = False
    """What is written stays in the transport's own buffer."""

    def __init__(self, log: list[Any], fails: bool = False) -> None:
        self.log = log
        self.closing = False
        self.fails = fails

    def write(self, data: Any) -> None:
        if self.fails or self.closing:  # as uvloop's do
            raise RuntimeError("the handle is closed")
        self.log.append((self, bytes(data)))

    def close(self) -> None:
        self.closing = True
        self.log.append((self, "closed"))

    def abort(self) -> None:
        self.closing = True
        self.log.append((self, "aborted"))

    def is_closing(self) -> bool:
        return self.closing

    def write_eof(self) -> None:
        self.log.append((self, "eof"))

    def get_write_buffer_size(self) -> int:
        return sum(len(told) for wire, told in self.log if wire is self) if self.keeps else 0

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self.write(data)


@pytest.fixture
def log() -> list[Any]:
    return []


def gathered(log: list[Any], fails: bool = False) -> tuple[Wire, GatheredTransport]:
    wire = Wire(log, fails)
    return wire, GatheredTransport(wire, Outbox.of(asyncio.get_running_loop()))


async def turn() -> None:
    await asyncio.sleep(0)


async def test_a_turns_writes_leave_together_in_the_order_of_their_first(log: list[Any]) -> None:
    (one, first), (two, second) = gathered(log), gathered(log)
    first.write(b"a")
    second.write(b"b")
    first.write(b"c")
    first.write(bytearray(b"d"))
    second.write(memoryview(b"e"))
    assert log == []

    await turn()
    assert log == [(one, b"acd"), (two, b"be")]

    first.write(memoryview(b"f"))
    first.write(b"g")
    await turn()
    assert log[2:] == [(one, b"fg")]


async def test_many_connections_do_not_wait_for_a_long_turn_to_end(log: list[Any]) -> None:
    transports = [gathered(log)[1] for _ in range(40)]
    for transport in transports:
        transport.write(b"a")

    assert len(log) == 32
    await turn()
    assert len(log) == 40


@pytest.mark.parametrize(("end", "told"), [("close", "closed"), ("write_eof", "eof")])
async def test_what_waits_is_sent_before_the_end(log: list[Any], end: str, told: str) -> None:
    wire, transport = gathered(log)
    transport.write(b"a")
    getattr(transport, end)()

    assert log == [(wire, b"a"), (wire, told)]
    await turn()
    assert len(log) == 2


async def test_an_aborted_connection_loses_what_waits(log: list[Any]) -> None:
    wire, transport = gathered(log)
    transport.write(b"a")
    transport.abort()
    await turn()

    assert log == [(wire, "aborted")]


async def test_one_that_is_closed_while_the_others_are_written_to_still_sends_first(log: list[Any]) -> None:
    wire, transport = gathered(log)

    class Closes(Wire):
        def write(self, data: Any) -> None:
            super().write(data)
            transport.close()

    closes = Closes(log)
    GatheredTransport(closes, Outbox.of(asyncio.get_running_loop())).write(b"a")
    transport.write(b"b")
    await turn()

    assert log == [(closes, b"a"), (wire, b"b"), (wire, "closed")]


async def test_what_waits_counts_as_unsent(log: list[Any]) -> None:
    wire, transport = gathered(log)
    wire.keeps = True
    transport.write(b"abcde")

    assert transport.get_write_buffer_size() == 5
    assert log == [(wire, b"abcde")]


async def test_what_is_large_in_one_piece_or_in_many_does_not_wait(log: list[Any]) -> None:
    """Else whoever writes much in one turn is never told that the client is slow."""
    wire, transport = gathered(log)
    transport.write(b"a")
    transport.write(bytes(40_000))
    assert log == [(wire, b"a" + bytes(40_000))]

    log.clear()
    for _ in range(40):
        transport.write(bytes(1000))
    assert log == [(wire, bytes(33_000))]
    transport.writelines([b"c", b"d"])
    assert log[1:] == [(wire, bytes(7000)), (wire, b"c"), (wire, b"d")]
    await turn()
    assert len(log) == 4


async def test_after_its_end_nothing_can_be_written(log: list[Any]) -> None:
    wire, transport = gathered(log)
    transport.write_eof()
    with pytest.raises(RuntimeError, match="write_eof"):
        transport.write(b"a")
    await turn()

    assert log == [(wire, "eof")]


async def test_what_cannot_be_joined_is_told_to_who_wrote_it_and_costs_the_others_nothing(log: list[Any]) -> None:
    (one, first), (two, second) = gathered(log), gathered(log)
    first.write(b"a")
    with pytest.raises(TypeError):
        first.write("no bytes")
    second.write(b"b")
    await turn()
    second.write(b"c")
    await turn()

    assert log == [(one, b"a"), (two, b"b"), (two, b"c")]


async def test_a_large_piece_is_passed_on_as_it_is(log: list[Any]) -> None:
    """A body is held once in memory, not once more for each that handles it."""

    class Keeps(Wire):
        def write(self, data: Any) -> None:
            self.log.append(data)

    wire = Keeps(log)
    large = bytes(40_000)
    GatheredTransport(wire, Outbox.of(asyncio.get_running_loop())).write(large)

    assert log[0] is large


async def test_a_connection_that_was_lost_meanwhile_costs_the_others_nothing(
    log: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    (lost, first), (broken, second), (well, third) = gathered(log), gathered(log, fails=True), gathered(log)
    for transport in (first, second, third):
        transport.write(b"a")
    lost.closing = True
    with caplog.at_level(logging.ERROR):
        await turn()

    assert log == [(broken, "aborted"), (well, b"a")]
    assert caplog.text.count("writing to a connection failed") == 1


async def test_an_answer_that_comes_before_its_request_has_left_is_nobodys(log: list[Any]) -> None:
    """The server has sent something unasked: what it answers next could be taken for another request's."""
    pool = OriginPool(Origin("api.test", 80))
    connection = Connection(pool, asyncio.get_running_loop())
    wire = Wire(log)
    connection.connection_made(wire)
    head = (b"POST / HTTP/1.1\r\n", b"\r\n")
    answered = connection.request(head, b"")
    await turn()
    connection.data_received(ANSWER)
    assert answered.done()

    unsent = connection.request(head, b"")
    connection.data_received(ANSWER)
    with pytest.raises(StaleConnectionError):  # it goes out once more, over another connection
        await unsent
    await turn()

    assert [told for _, told in log] == [b"".join(head), "aborted"]


async def test_a_new_connection_on_which_the_server_speaks_first_is_broken(log: list[Any]) -> None:
    connection = Connection(OriginPool(Origin("api.test", 80)), asyncio.get_running_loop())
    connection.connection_made(Wire(log))
    unsent = connection.request((b"POST / HTTP/1.1\r\n", b"\r\n"), b"")
    connection.data_received(ANSWER)

    with pytest.raises(ProviderError) as caught:
        await unsent
    assert caught.value.kind is FailureKind.RESET


async def test_a_loop_has_one_outbox_and_takes_it_along() -> None:
    loop = asyncio.new_event_loop()
    assert Outbox.of(loop) is Outbox.of(loop)
    assert Outbox.of(asyncio.get_running_loop()) is not Outbox.of(loop)
    loop.close()
    outbox = weakref.ref(Outbox.of(loop))
    del loop
    gc.collect()
    assert outbox() is None
