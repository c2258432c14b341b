from __future__ import annotations

import asyncio
import random

import pytest

from gateway.upstream.fair_queue import FairQueue, QueueFullError


async def turn() -> None:
    """Let every task that can run do so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_key_is_served_first_come_first_served() -> None:
    queue = FairQueue(places=1, limit=10)
    order: list[int] = []

    async def work(number: int) -> None:
        await queue.take("a")
        order.append(number)
        queue.give_back()

    await asyncio.gather(*(work(number) for number in range(5)))

    assert order == [0, 1, 2, 3, 4]


async def test_keys_take_turns_however_many_each_has_waiting() -> None:
    queue = FairQueue(places=1, limit=20)
    order: list[str] = []

    async def work(key: str) -> None:
        await queue.take(key)
        order.append(key)
        await asyncio.sleep(0)
        queue.give_back()

    await queue.take("first")
    tasks = [asyncio.create_task(work(key)) for key in ["a"] * 4 + ["b"] * 2 + ["c"]]
    await turn()
    queue.give_back()
    await asyncio.gather(*tasks)

    assert order == ["a", "b", "c", "a", "b", "a", "a"]


async def test_no_more_wait_than_may() -> None:
    queue = FairQueue(places=1, limit=2)
    await queue.take("a")
    waiting = [asyncio.create_task(queue.take("a")) for _ in range(2)]
    await turn()
    assert queue.waiting == 2

    with pytest.raises(QueueFullError):
        await queue.take("b")

    queue.give_back()
    await turn()
    assert queue.waiting == 1
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_place_that_comes_together_with_the_cancellation_is_passed_on() -> None:
    queue = FairQueue(places=1, limit=5)
    await queue.take("a")
    leaving = asyncio.create_task(queue.take("a"))
    staying = asyncio.create_task(queue.take("b"))
    await turn()

    queue.give_back()
    leaving.cancel()
    await turn()

    assert leaving.cancelled()
    assert staying.done()
    queue.give_back()
    assert queue.free == 1


async def test_whoever_leaves_is_passed_over() -> None:
    queue = FairQueue(places=1, limit=5)
    await queue.take("a")
    leaving = asyncio.create_task(queue.take("a"))
    staying = asyncio.create_task(queue.take("a"))
    await turn()

    leaving.cancel()
    queue.give_back()
    await turn()

    assert leaving.cancelled()
    assert staying.done()
    assert queue.waiting == 0


@pytest.mark.parametrize("seed", range(20))
async def test_no_place_is_lost_or_invented_whatever_happens(seed: int) -> None:
    rng = random.Random(seed)
    queue = FairQueue(places=3, limit=6)
    holding = 0

    async def work() -> None:
        nonlocal holding
        await queue.take(rng.choice("abc"))
        holding += 1
        assert holding <= 3
        try:
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
        finally:
            holding -= 1
            queue.give_back()

    tasks: list[asyncio.Task[None]] = []
    for _ in range(200):
        tasks.append(asyncio.create_task(work()))
        if rng.random() < 0.4:
            rng.choice(tasks).cancel()
        if rng.random() < 0.5:
            await asyncio.sleep(0)
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert {type(result) for result in results} <= {type(None), asyncio.CancelledError, QueueFullError}
    assert (queue.free, queue.waiting) == (3, 0)
