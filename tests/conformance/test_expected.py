"""What hosted providers are sent and what is made of their answers, by their SDKs' types and users' reports."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.expectations import DIRECTORY, Case, expected_of
from tests.fakes.gateway import RunningGateway, running_gateway
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer

HOSTED = sorted(path.stem for path in DIRECTORY.glob("*.yaml"))
CASES = [pytest.param(name, case, id=f"{name}: {case.says}") for name in HOSTED for case in expected_of(name).cases]
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Stage:
    """A gateway in front of one provider, which plays one case after the other."""

    def __init__(self) -> None:
        self.case: Case | None = None
        self.sent: list[Any] = []

    def script(self, request: RecordedRequest) -> Script:
        assert self.case is not None
        self.sent.append(json.loads(request.body))
        return self.case.script(request, len(self.sent) - 1)

    async def play(self, name: str, case: Case, gateway: RunningGateway) -> None:
        self.case, self.sent = case, []
        answer = await gateway.post(f"/v1/{case.endpoint}", case.body())
        case.check(self.sent, answer, expected_of(name).takes)


def settings(name: str, port: int) -> dict[str, Any]:
    provider = {"type": name, "base_url": f"http://127.0.0.1:{port}/v1", "api_key": "sk-provider"}
    models = {
        model: {"targets": [{"provider": name, "model": target}], "retries": {"attempts": 1}}
        for model, target in expected_of(name).models.items()
    }
    return {"providers": {name: provider}, "models": models}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stages() -> AsyncIterator[dict[str, tuple[Stage, RunningGateway]]]:
    """For each provider a gateway that is used by all its cases; those that refuse a key or a load have their own."""
    made: dict[str, tuple[Stage, RunningGateway]] = {}
    async with contextlib.AsyncExitStack() as running:
        for name in HOSTED:
            stage = Stage()
            server = await running.enter_async_context(ScriptedServer(stage.script))
            made[name] = (stage, await running.enter_async_context(running_gateway(settings(name, server.port))))
        yield made


@pytest.mark.parametrize(("name", "case"), CASES)
async def test_expectation(name: str, case: Case, stages: dict[str, tuple[Stage, RunningGateway]]) -> None:
    if all(answer.status in (200, 400, 422) for answer in case.answers):
        stage, gateway = stages[name]
        await stage.play(name, case, gateway)
        return
    stage = Stage()
    async with ScriptedServer(stage.script) as server, running_gateway(settings(name, server.port)) as gateway:
        await stage.play(name, case, gateway)


@pytest.mark.parametrize("name", HOSTED)
async def test_there_are_enough_expectations(name: str) -> None:
    expected = expected_of(name)

    assert len(expected.cases) >= 25
    assert len({case.says for case in expected.cases}) == len(expected.cases)
