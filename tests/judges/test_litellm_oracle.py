"""litellm and the gateway send the same chats to the same providers; each difference is listed with its reason."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from gateway.probe.seen import Seen
from tests.fakes.gateway import RunningGateway, running_gateway
from tests.fakes.simulated import Simulated, simulated
from tests.judges.chats import CHATS
from tests.judges.differing import Told, differences
from tests.judges.environments import interpreter

pytestmark = [pytest.mark.long, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="module")]

PROVIDERS: Final = {
    "groq": ("groq", "openai/gpt-oss-120b"),
    "cerebras": ("cerebras", "gpt-oss-120b"),
    "together": ("together_ai", "openai/gpt-oss-120b"),
    "fireworks": ("fireworks_ai", "accounts/fireworks/models/gpt-oss-20b"),
}
"""What litellm calls each, and the model that is asked."""
LISTED: Final = yaml.safe_load(Path(__file__).with_name("differences.yaml").read_text())
Found = dict[tuple[str, str], tuple[Any, Any]]


class Litellm:
    """The library in a process of its own, which makes one call at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, python: Path, running: Simulated, name: str, model: str) -> Litellm:
        environ = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR")}
        script = Path(__file__).with_name("litellm_judge.py")
        process = await asyncio.create_subprocess_exec(
            str(python),
            "-I",
            str(script),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environ,
            limit=2**24,
        )
        made = cls(process)
        await made._write({"api_base": running.base_url, "api_key": running.key, "model": f"{name}/{model}"})
        return made

    async def chat(self, running: Simulated, body: Any) -> Told:
        before = len(running.requests)
        await self._write(body)
        assert self._process.stdout is not None
        found = json.loads(await asyncio.wait_for(self._process.stdout.readline(), 120))
        sent = running.requests[before:]
        if "error" in found:
            return Told(sent, None, found["error"])
        raw = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in found["chunks"])
        if not body.get("stream"):
            raw = json.dumps(found["chunks"][0]).encode()
        return Told(sent, Seen(200, {}, raw, streamed=bool(body.get("stream"))))

    async def _write(self, orders: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(orders).encode() + b"\n")
        await self._process.stdin.drain()

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def by_gateway(gateway: RunningGateway, running: Simulated, body: Any) -> Told:
    before = len(running.requests)
    answer = await gateway.chat(**body)
    sent = running.requests[before:]
    if answer.status != 200:
        return Told(sent, None, str(answer.status))
    return Told(sent, Seen(200, {}, answer.body, streamed=bool(body.get("stream"))))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROVIDERS)
async def found(request: pytest.FixtureRequest) -> AsyncIterator[tuple[str, Found]]:
    """Every difference at one provider, by chat and place."""
    assert request.config.cache is not None
    provider, (name, model) = request.param, PROVIDERS[request.param]
    python = interpreter("litellm", request.config.cache.mkdir("judges"))
    places: Found = {}
    async with simulated(provider) as one, simulated(provider) as other:
        settings = {
            "providers": {"p": one.settings},
            "models": {"m": {"targets": [{"provider": "p", "model": model}]}},
        }
        litellm = await Litellm.start(python, other, name, model)
        async with running_gateway(settings) as gateway:
            for chat, body in CHATS.items():
                ours, theirs = await by_gateway(gateway, one, body), await litellm.chat(other, body)
                places |= {(chat, at): (mine, their) for at, mine, their in differences(ours, theirs)}
        await litellm.stop()
    yield provider, places


def _meant(provider: str, chat: str, at: str) -> list[int]:
    """The entries of the list that are about a difference."""
    return [
        number
        for number, entry in enumerate(LISTED)
        if provider in entry["providers"]
        and any(fnmatch(chat, one) for one in entry["chats"])
        and any(fnmatch(at, one) for one in entry["at"])
    ]


async def test_no_difference_is_without_a_reason(found: tuple[str, Found]) -> None:
    provider, places = found

    assert {place: both for place, both in places.items() if not _meant(provider, *place)} == {}


async def test_no_reason_is_without_a_difference(found: tuple[str, Found]) -> None:
    provider, places = found
    used = {number for place in places for number in _meant(provider, *place)}

    unused = [entry for number, entry in enumerate(LISTED) if provider in entry["providers"] and number not in used]
    assert unused == []
