"""What is answered without FastAPI reads as FastAPI's own answers do, and FastAPI comes when it is needed."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from gateway.http import app as http_app
from gateway.http.app import create_http_app
from gateway.http.front import Front, pages
from gateway.services import Services
from tests.unit.http.conftest import KEY

_IDS = {"x-request-id", "request-id"}


def _paths(services: Services) -> list[str]:
    found = [page.path for page in pages(services)]
    return [
        path.replace("{model_id:path}", name) for path in found for name in ("chat", "private/small", "nowhere", "")
    ]


def _client(app: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway.test", headers=headers)


def _told(answer: httpx2.Response) -> tuple[object, ...]:
    headers = {name: value for name, value in answer.headers.items() if name not in _IDS}
    assert set(answer.headers) >= _IDS
    body = answer.json() if "json" in headers.get("content-type", "") and answer.content else answer.text
    if isinstance(body, dict) and "error" in body:
        body["error"].pop("request_id")
        headers.pop("content-length", None)  # ids grow
    return answer.status_code, headers, body


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("key", ["", KEY, "wrong-key-0123456789", "admin-key-0123456789"])
async def test_the_front_answers_every_page_as_fastapi_would(services: Services, method: str, key: str) -> None:
    front = Front(services)
    async with _client(front) as ours, _client(create_http_app(services)) as theirs:
        for path in _paths(services):
            headers = {"authorization": f"Bearer {key}"}
            answers = [await client.request(method, path, headers=headers) for client in (ours, theirs)]

            assert _told(answers[0]) == _told(answers[1]), path


async def test_unchanged_models_are_answered_alike_too(services: Services) -> None:
    async with _client(Front(services)) as ours, _client(create_http_app(services)) as theirs:
        etag = (await ours.get("/v1/models")).headers["etag"]
        answers = [await client.get("/v1/models", headers={"if-none-match": etag}) for client in (ours, theirs)]

    assert answers[0].status_code == 304
    assert _told(answers[0]) == _told(answers[1])


async def test_fastapi_is_made_once_for_all_who_ask_at_the_same_time_and_not_before(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def create(services: Services) -> object:
        made.append(create_http_app(services))
        return made[-1]

    monkeypatch.setattr(http_app, "create_http_app", create)
    async with _client(Front(services)) as client:
        for path in _paths(services):
            await client.get(path)
        assert made == []

        admin = {"authorization": "Bearer admin-key-0123456789"}
        answers = await asyncio.gather(*(client.get("/admin/keys", headers=admin) for _ in range(8)))

    assert [answer.status_code for answer in answers] == [200] * 8
    assert len(made) == 1


async def test_who_leaves_while_fastapi_is_made_leaves_it_to_the_next(services: Services) -> None:
    front = Front(services)
    async with _client(front) as client:
        for turns in range(6):
            task = asyncio.create_task(client.get("/openapi.json"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})

        assert (await client.get("/openapi.json")).status_code == 200


async def test_a_bug_in_a_page_is_an_answer_too(services: Services, caplog: pytest.LogCaptureFixture) -> None:
    services.catalog = None  # type: ignore[misc,assignment]  # the bug
    async with _client(Front(services)) as client:
        answer = await client.get("/v1/models")

    assert answer.status_code == 500
    assert answer.json()["error"]["message"].startswith("The gateway met an error of its own")
    assert "/v1/models" in caplog.text
