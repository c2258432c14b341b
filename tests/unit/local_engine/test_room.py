"""Which models are loaded when there is not room for all, and who waits for whom."""

from __future__ import annotations

import asyncio

import pytest

from local_engine.room import Room


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class PlayedTenant:
    """A model that leaves when told to: at once, or when the test says it is done."""

    def __init__(self, name: str, room: Room, last_used: float = 0.0, *, busy: bool = False) -> None:
        self.name = name
        self.last_used = last_used
        self.ready_since = 0.0
        self.busy = busy
        self.leaving = False
        self._room = room

    def give_way(self, *, though_busy: bool) -> bool:
        if self.leaving or (self.busy and not though_busy):
            return False
        self.leaving = True
        if not self.busy:
            self._room.leave(self)
        return True

    def finish(self) -> None:
        self.busy = False
        if self.leaving:
            self._room.leave(self)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def settle() -> None:
    """Let whoever waits look again."""
    await asyncio.sleep(0.15)


async def test_without_a_limit_there_is_always_room() -> None:
    room = Room()
    for number in range(20):
        await room.enter(PlayedTenant(str(number), room))

    assert room.has_place


async def test_the_one_unused_for_longest_gives_way() -> None:
    room = Room(limit=2)
    old, new, third = (PlayedTenant(name, room, used) for name, used in (("old", 1.0), ("new", 2.0), ("third", 3.0)))
    await room.enter(new)
    await room.enter(old)

    await room.enter(third)

    assert (old.leaving, new.leaving) == (True, False)


async def test_a_busy_one_stays_while_another_can_go() -> None:
    room = Room(limit=2)
    busy, idle, third = (
        PlayedTenant("busy", room, 1.0, busy=True),
        PlayedTenant("idle", room, 2.0),
        PlayedTenant("x", room),
    )
    await room.enter(busy)
    await room.enter(idle)

    await room.enter(third)

    assert (busy.leaving, idle.leaving) == (False, True)


async def test_where_all_are_busy_one_waits_and_then_the_oldest_takes_no_more(clock: Clock) -> None:
    room = Room(limit=2, patience_seconds=10, clock=clock)
    old, new = PlayedTenant("old", room, 1.0, busy=True), PlayedTenant("new", room, 2.0, busy=True)
    await room.enter(old)
    await room.enter(new)
    entering = asyncio.create_task(room.enter(PlayedTenant("third", room)))
    await settle()
    assert not old.leaving

    clock.now = 11
    async with asyncio.timeout(10):
        while not old.leaving:
            await asyncio.sleep(0.01)
    assert not new.leaving
    assert not entering.done(), "requests under way are answered first"

    old.finish()
    await asyncio.wait_for(entering, 5)


async def test_places_are_given_in_the_order_of_asking() -> None:
    room = Room(limit=1)
    first = PlayedTenant("first", room, busy=True)
    await room.enter(first)
    came: list[str] = []

    async def enter(name: str) -> None:
        tenant = PlayedTenant(name, room)
        await room.enter(tenant)
        came.append(name)

    tasks = [asyncio.create_task(enter(name)) for name in ("second", "third")]
    await settle()
    first.finish()
    room.leave(first)
    await asyncio.wait(tasks, timeout=5)

    assert came == ["second", "third"]


@pytest.mark.parametrize("turns", range(6))
async def test_who_is_stopped_in_the_moment_of_a_place_coming_free_stops(turns: int) -> None:
    room = Room(limit=1)
    first = PlayedTenant("first", room, busy=True)
    await room.enter(first)
    waiting = asyncio.create_task(room.enter(PlayedTenant("second", room)))
    await asyncio.sleep(0.01)
    room.leave(first)
    for _ in range(turns):
        await asyncio.sleep(0)
    came = waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled() is not came


async def test_who_stops_waiting_leaves_the_place_to_others() -> None:
    room = Room(limit=1)
    first = PlayedTenant("first", room, busy=True)
    await room.enter(first)
    waiting = asyncio.create_task(room.enter(PlayedTenant("second", room)))
    await settle()
    waiting.cancel()
    await asyncio.wait([waiting])

    room.leave(first)

    assert room.enter_if_free(PlayedTenant("third", room))


async def test_a_lower_limit_tells_those_unused_for_longest() -> None:
    room = Room(limit=3)
    tenants = [PlayedTenant(str(used), room, float(used)) for used in (3, 1, 2)]
    for tenant in tenants:
        await room.enter(tenant)
    assert not any(room.too_many(tenant) for tenant in tenants)

    room.limit = 1

    assert [room.too_many(tenant) for tenant in tenants] == [False, True, True]


async def test_one_that_took_long_to_load_is_left_to_those_it_was_loaded_for(clock: Clock) -> None:
    room = Room(limit=1, patience_seconds=10, clock=clock)
    slow, other = PlayedTenant("slow", room, busy=True), PlayedTenant("other", room)
    await room.enter(slow)
    entering = asyncio.create_task(room.enter(other))
    await settle()

    clock.now = slow.ready_since = 30.0  # it has just been loaded, and others have been waiting all the while
    await settle()
    assert not slow.leaving
    clock.now = 39.9
    await settle()
    assert not slow.leaving
    clock.now = 40.0
    await settle()
    assert slow.leaving

    slow.finish()
    await entering


async def test_one_that_has_its_place_does_not_stand_in_line_for_it() -> None:
    room = Room(limit=1)
    first, second = PlayedTenant("first", room, busy=True), PlayedTenant("second", room)
    assert room.enter_if_free(first)
    entering = asyncio.create_task(room.enter(second))
    await settle()

    async with asyncio.timeout(5):
        await room.enter(first)

    entering.cancel()
