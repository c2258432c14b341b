"""A changed file is noticed, however it was written; one that says the same is not."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.reload.source import Source
from gateway.reload.watch import entries_of, watch
from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer
from tests.unit.reload.reloading import RELOAD_OK, settings, write

FIRST: dict[str, Any] = {"version": 1, **config(9)}
SECOND: dict[str, Any] = {**FIRST, "server": {"stream_keepalive": "9s"}}


class Seen:
    """What the file said each time that a change was told."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.values: list[float] = []
        self._told = asyncio.Event()

    async def on_change(self) -> None:
        self.values.append(self.source.load().server.stream_keepalive)
        self._told.set()

    async def next(self) -> list[float]:
        async with asyncio.timeout(10):
            await self._told.wait()
        self._told.clear()
        return self.values


@asynccontextmanager
async def watching(path: Path) -> AsyncIterator[Seen]:
    """Watches *path* once the system has been asked to."""
    source = Source(path, {})
    source.load()
    seen = Seen(source)
    task = asyncio.create_task(watch(source, seen.on_change))
    try:
        await until_watched()
        yield seen
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        # The library's own thread takes its leave a little later, and would pass for the watch of the next test.
        await until(lambda: not watches())


async def until_watched() -> None:
    await until(lambda: watches() > 0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def watches() -> int:
    """How many folders this process watches."""
    found = 0
    for info in Path("/proc/self/fdinfo").iterdir():
        with suppress(OSError):
            found += info.read_text().count("inotify wd:")
    return found


def put(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))
    return path


def rewrite(path: Path) -> None:
    put(path, SECOND)


def rename_over(path: Path) -> None:
    put(path.with_suffix(".swp"), SECOND).rename(path)


def delete_and_write(path: Path) -> None:
    path.unlink()
    put(path, SECOND)


def write_slowly(path: Path) -> None:
    with path.open("w") as file:
        for letter in json.dumps(SECOND):
            file.write(letter)
            file.flush()


@pytest.mark.parametrize("change", [rewrite, rename_over, delete_and_write, write_slowly])
async def test_every_way_to_write_a_file_is_one_change(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = put(tmp_path / "config.yaml", FIRST)
    async with watching(path) as seen:
        change(path)

        assert await seen.next() == [9.0]


async def test_changes_after_a_rename_are_seen_too(tmp_path: Path) -> None:
    path = put(tmp_path / "config.yaml", FIRST)
    async with watching(path) as seen:
        rename_over(path)
        await seen.next()
        put(path, FIRST)

        assert await seen.next() == [9.0, 15.0]


async def test_a_mounted_configuration_of_kubernetes_is_followed(tmp_path: Path) -> None:
    """Its file is a link into `..data`, a link to the folder of a version, that is replaced as a whole."""
    for name, content in (("..1", FIRST), ("..2", SECOND), ("..3", FIRST)):
        (tmp_path / name).mkdir()
        put(tmp_path / name / "config.yaml", content)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")

    async with watching(tmp_path / "config.yaml") as seen:
        for version, told in (("..2", [9.0]), ("..3", [9.0, 15.0])):
            (tmp_path / "..data_tmp").symlink_to(version)
            (tmp_path / "..data_tmp").rename(tmp_path / "..data")
            assert await seen.next() == told


async def test_a_link_to_a_file_elsewhere_is_followed_when_it_is_turned_and_when_the_file_changes(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = put(tmp_path / "a" / "one.yaml", FIRST), put(tmp_path / "b" / "two.yaml", SECOND)
    link = tmp_path / "config.yaml"
    link.symlink_to(one)

    async with watching(link) as seen:
        link.unlink()
        link.symlink_to(two)
        assert await seen.next() == [9.0]
        put(two, FIRST)
        assert await seen.next() == [9.0, 15.0]


async def test_a_file_that_says_the_same_is_no_change(tmp_path: Path) -> None:
    path = put(tmp_path / "config.yaml", FIRST)
    async with watching(path) as seen:
        put(path, FIRST)
        path.touch()
        put(tmp_path / "another.yaml", SECOND)
        put(path, SECOND)

        assert await seen.next() == [9.0]


async def test_a_file_that_is_away_for_a_while_is_no_change(tmp_path: Path) -> None:
    path = put(tmp_path / "config.yaml", FIRST)
    async with watching(path) as seen:
        path.rename(tmp_path / "away")
        await asyncio.sleep(0.4)
        (tmp_path / "away").rename(path)
        put(path, SECOND)

        assert await seen.next() == [9.0]


async def test_a_watch_that_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    path = put(tmp_path / "config.yaml", FIRST)
    async with watching(path):
        assert watches() == 1
    assert watches() == 0


def test_a_pipe_is_read_once_and_no_more(tmp_path: Path) -> None:
    """As in ``gateway serve -c <(make-config)``."""
    reading, writing = os.pipe()
    os.write(writing, json.dumps(SECOND).encode())
    os.close(writing)
    source = Source(Path(f"/dev/fd/{reading}"), {})
    try:
        assert source.load().server.stream_keepalive == 9.0
        assert not source.has_changed()
    finally:
        os.close(reading)


def test_every_link_on_the_way_counts(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real" / "config.yaml").symlink_to("main.yaml")
    put(tmp_path / "real" / "main.yaml", FIRST)

    assert list(entries_of(tmp_path / "folder" / "config.yaml")) == [
        tmp_path / "folder",
        tmp_path / "real" / "config.yaml",
        tmp_path / "real" / "main.yaml",
    ]


def test_links_that_lead_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert set(entries_of(tmp_path / "a")) == {tmp_path / "a", tmp_path / "b"}


async def test_a_gateway_that_watches_follows_its_file_and_survives_a_wrong_one() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server), watch=True) as gateway:
        await until_watched()
        write(gateway, "providers: [")
        await gateway.wait_for(lambda: gateway.metric(RELOAD_OK) == 0, 10)
        assert (await gateway.chat()).status == 200

        write(gateway, {**settings(server), "aliases": {"other": "m"}})
        await gateway.wait_for(lambda: gateway.metric(RELOAD_OK) == 1, 10)
        assert gateway.services.reloads.last.trigger == "file"
        assert (await gateway.chat(model="other")).status == 200
