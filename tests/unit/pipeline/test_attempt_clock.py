"""The clock of an attempt by itself, on a time that the test sets."""

from __future__ import annotations

import asyncio
import json
import time

from adapters.types import FailureKind
from gateway.deadlines import NEVER, Deadlines
from gateway.pipeline.clock import AttemptClock
from tests.fakes.gateway import CHAT, chat_body, config, request, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import Hang, ScriptedServer
from tests.unit.pipeline.test_four_clocks import SLOW


class Clock:
    """An attempt's clock on a time that the test sets."""

    def __init__(self, first_content: float = 10.0, total: float = 100.0) -> None:
        self.now = 0.0
        self.deadlines = Deadlines(clock=lambda: self.now)
        self.clock = AttemptClock(self.deadlines, lambda: self.now, asyncio.current_task(), first_content, total)
        self.expired: list[FailureKind] = []
        self.clock.on_over = lambda: self.expired.append(self.clock.kind)


async def test_a_clock_names_the_limit_that_comes_first() -> None:
    assert Clock(10, 100).clock.kind is FailureKind.FIRST_CONTENT_TIMEOUT
    assert Clock(10, 5).clock.kind is FailureKind.TOTAL_TIMEOUT
    clock = Clock().clock
    clock.content_came(1.0, 30.0)
    assert (clock.kind, clock.deadline) == (FailureKind.STALLED, 31.0)
    clock.content_came(80.0, 30.0)
    assert (clock.kind, clock.deadline) == (FailureKind.TOTAL_TIMEOUT, 100.0)
    clock.stop()
    clock.stop()


async def test_a_pause_gives_the_time_back() -> None:
    it = Clock()
    it.clock.content_came(1.0, 30.0)
    it.now = 11.0
    it.clock.client_waits(True)
    assert it.clock.deadline == NEVER
    it.now = 500.0
    it.clock.client_waits(False)
    assert it.clock.deadline == 520.0
    it.clock.content_came(500.0, 200.0)
    assert it.clock.deadline == 589.0  # the whole limit has moved as well
    it.clock.stop()


async def test_content_that_was_on_its_way_starts_no_clock_during_a_pause() -> None:
    it = Clock()
    it.now = 2.0
    it.clock.client_waits(True)
    it.clock.content_came(2.0, 30.0)
    assert it.clock.deadline == NEVER
    it.now = 50.0
    it.clock.client_waits(False)
    assert it.clock.deadline == 80.0
    it.clock.stop()


async def test_content_that_was_only_noted_moves_the_deadline_once_it_passes() -> None:
    it = Clock()
    it.clock.content_came(1.0, 30.0)
    it.clock.content_at = 20.0
    it.now = 31.0
    it.clock.on_expire()
    assert (it.clock.deadline, it.expired) == (50.0, [])
    it.now = 50.0
    it.clock.on_expire()
    assert (it.clock.deadline, it.expired) == (NEVER, [FailureKind.STALLED])
    it.clock.content_at = 80.0
    it.now = 81.0
    it.clock.client_waits(True)  # what was noted counts here too
    it.now = 90.0
    it.clock.client_waits(False)
    assert (it.clock.deadline, it.clock.kind) == (109.0, FailureKind.TOTAL_TIMEOUT)
    it.clock.stop()


async def test_pauses_told_twice_count_once() -> None:
    it = Clock()
    it.now = 1.0
    it.clock.client_waits(True)
    it.now = 5.0
    it.clock.client_waits(True)
    it.now = 6.0
    it.clock.client_waits(False)
    it.clock.client_waits(False)
    assert it.clock.deadline == 15.0
    it.clock.stop()


async def test_a_waiting_task_is_cancelled_and_can_tell_that_it_was_the_clock() -> None:
    deadlines = Deadlines(tick_seconds=0.01)
    loop = asyncio.get_running_loop()
    told = []

    async def wait() -> None:
        now = time.monotonic()
        clock = AttemptClock(deadlines, time.monotonic, asyncio.current_task(), now + 0.02, now + 9)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append((clock.expired, clock.error("acme").message))
        finally:
            clock.stop()

    before = loop.time()
    await asyncio.create_task(wait())
    assert loop.time() - before < SLOW
    assert told == [(True, "acme sent no content in time.")]
    assert len(deadlines) == 0
    deadlines.close()


async def test_a_client_that_leaves_as_the_time_runs_out_has_left() -> None:
    """Both cancel the same task in the same moment: no further target may be asked then."""
    async with (
        ScriptedServer([Hang()]) as one,
        ScriptedServer([whole()]) as two,
        running_gateway(config(one, two, timeouts={"first_event": "60s"})) as gateway,
    ):
        client = await gateway.connect()
        await client.send(request(CHAT, json.dumps(chat_body()).encode()))
        await one.wait_until(lambda it: bool(it.requests))
        (clock,) = [watch for watch in gateway.request_watches() if isinstance(watch, AttemptClock)]
        (call,) = gateway.services.in_flight
        clock.on_expire()
        assert call.task is not None
        call.task.cancel("the client left")
        row = await gateway.row()
    assert two.requests == []
    assert (row["status"], [attempt["failure"] for attempt in row["attempts"]]) == (499, ["client_left"])
