"""Readiness is true: it fails when a request would, and says why."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from gateway.http.health import Readiness
from gateway.services import Services


@pytest.fixture(autouse=True)
def every_probe_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.http.health._KEPT_SECONDS", 0.0)


async def ready(client: httpx2.AsyncClient) -> tuple[int, dict[str, Any]]:
    answer = await client.get("/health/ready")
    return answer.status_code, answer.json()


async def test_a_healthy_gateway_is_ready_and_lists_what_was_checked(client: httpx2.AsyncClient) -> None:
    status, answer = await ready(client)

    assert status == 200
    assert answer["status"] == "ready"
    assert {name for name, check in answer["checks"].items() if check["ok"]} == {
        "accepting",
        "config",
        "database",
        "schema",
    }


async def test_no_key_is_needed_for_health(client: httpx2.AsyncClient) -> None:
    for path in ("/health/live", "/health/ready", "/"):
        assert (await client.get(path, headers={"authorization": ""})).status_code == 200
        head = await client.head(path, headers={"authorization": ""})
        assert (head.status_code, head.content) == (200, b"")


async def test_a_draining_gateway_is_alive_but_not_ready(client: httpx2.AsyncClient, services: Services) -> None:
    services.draining = True

    status, answer = await ready(client)

    assert status == 503
    assert answer["checks"]["accepting"] == {"ok": False, "reason": "shutting down"}
    assert (await client.get("/health/live")).status_code == 200


async def test_without_its_database_the_gateway_is_not_ready(client: httpx2.AsyncClient, services: Services) -> None:
    await services.database.aclose()

    status, answer = await ready(client)

    assert status == 503
    assert answer["status"] == "not ready"
    assert not answer["checks"]["database"]["ok"]
    assert not answer["checks"]["schema"]["ok"]


async def test_another_schema_is_not_ready_and_says_what_helps(client: httpx2.AsyncClient, services: Services) -> None:
    async with services.database.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))

    status, answer = await ready(client)

    assert status == 503
    assert "gateway db upgrade" in answer["checks"]["schema"]["reason"]
    assert answer["checks"]["database"]["ok"]


async def test_an_engine_that_is_down_only_matters_when_nothing_else_answers(
    client: httpx2.AsyncClient, services: Services
) -> None:
    problems: dict[str, str] = services.backends.problems  # type: ignore[attr-defined]
    problems["gpu"] = "starting: the model is being read"

    status, answer = await ready(client)
    assert (status, answer["status"]) == (200, "degraded")
    assert answer["checks"]["engine gpu"] == {"ok": False, "reason": "starting: the model is being read"}

    problems.update(fast="down", slow="down")
    status, answer = await ready(client)
    assert status == 503


async def test_probes_close_together_share_one_look_at_the_database(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.http.health._KEPT_SECONDS", 0.5)
    now = time.monotonic()
    readiness = Readiness(services, clock=lambda: now)
    assert all(check.ok for check in await readiness.checks())
    await services.database.aclose()

    assert all(check.ok for check in await readiness.checks())
    now += 1
    assert not all(check.ok for check in await readiness.checks())
