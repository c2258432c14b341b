"""Whatever goes wrong, a client gets JSON in OpenAI's shape that says what helps."""

from __future__ import annotations

import httpx2
import pytest
from fastapi import FastAPI

from gateway.http.app import create_http_app
from gateway.services import Services

BASE = "http://gateway.test:8080/v1"


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("POST", "/v1/chat/completion", f"Did you mean /v1/chat/completions? Your base URL should be {BASE}."),
        ("POST", "/v1/v1/chat/completions", f"The path holds /v1 twice: Your base URL should be {BASE}"),
        ("GET", "/v1/v1/models", f"{BASE}/models"),
        ("POST", "/v1/openai/v1/embeddings", f"{BASE}/embeddings"),
        ("POST", "/api/chat/completions", f"Your base URL should be {BASE}, which makes this {BASE}/chat/completions"),
        ("POST", "/v2/completions", f"{BASE}/completions"),
        ("GET", "/v1/modles", "Did you mean /v1/models?"),
        ("GET", "/health/redy", "Did you mean /health/ready?"),
        ("GET", "/nowhere", f"The API is under {BASE}"),
    ],
)
async def test_a_wrong_path_names_the_right_one(client: httpx2.AsyncClient, method: str, path: str, said: str) -> None:
    answer = await client.request(method, path)

    assert answer.status_code == 404
    error = answer.json()["error"]
    assert said in error["message"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "not_found")


async def test_a_strange_host_header_is_not_repeated(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/nowhere", headers={"host": "evil.test/<script>"})

    assert "evil" not in answer.text
    assert "http://127.0.0.1:8080/v1" in answer.text


@pytest.mark.parametrize("prefix", ["/v1", "", "/openai/v1"])
@pytest.mark.parametrize("path", ["/chat/completions", "/completions", "/embeddings"])
async def test_generation_routes_take_post_alone(client: httpx2.AsyncClient, prefix: str, path: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer = await client.request(method, prefix + path)
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"
        assert answer.json()["error"]["code"] == "method_not_allowed"


async def test_a_wrong_method_elsewhere_lists_the_right_ones(client: httpx2.AsyncClient) -> None:
    for path, allowed in (("/health/live", "GET, HEAD"), ("/v1/models", "GET, HEAD"), ("/admin/keys", "GET, POST")):
        answer = await client.patch(path)

        assert answer.status_code == 405
        assert answer.headers["allow"] == allowed
        assert answer.json()["error"]["message"] == f"{path} does not take PATCH; it takes {allowed}."


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        (b'{"name": 7}', "name", "invalid_value"),
        (b'{"name": "n", "budget": 1}', "budget", "invalid_value"),
        (b'{"name": "n", "name": "m"}', None, "invalid_json"),
        (b"{", None, "invalid_json"),
        (b"[]", None, "invalid_json"),
    ],
)
async def test_a_body_that_does_not_fit_is_a_400(
    client: httpx2.AsyncClient, body: bytes, param: str | None, code: str
) -> None:
    headers = {"authorization": "Bearer admin-key-0123456789", "content-type": "application/json"}

    answer = await client.post("/admin/keys", content=body, headers=headers)

    assert answer.status_code == 400
    assert "detail" not in answer.json()
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)


async def test_a_bug_is_a_500_without_its_details(services: Services) -> None:
    app: FastAPI = create_http_app(services)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the secret is 42")

    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
        answer = await client.get("/broken", headers={"x-request-id": "mine-1"})

    assert answer.status_code == 500
    assert "42" not in answer.text
    assert answer.json()["error"]["code"] == "internal_error"
    assert answer.headers["x-request-id"] == answer.headers["request-id"] == "mine-1"


@pytest.mark.parametrize("path", ["/", "/v1/models", "/health/ready", "/metrics", "/nowhere", "/openapi.json"])
async def test_every_answer_carries_the_request_id_twice(client: httpx2.AsyncClient, path: str) -> None:
    kept = await client.get(path, headers={"x-request-id": "mine-1"})
    made = await client.get(path, headers={"x-request-id": "not safe\x7f"})

    assert kept.headers.get_list("x-request-id") == kept.headers.get_list("request-id") == ["mine-1"]
    assert made.headers["x-request-id"] == made.headers["request-id"]
    assert made.headers["x-request-id"].startswith("req_")


async def test_head_on_a_wrong_path_has_no_body(client: httpx2.AsyncClient) -> None:
    answer = await client.head("/nowhere")

    assert (answer.status_code, answer.content) == (404, b"")


async def test_no_other_origin_is_let_in(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/models", headers={"origin": "https://evil.test"})

    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/", "/openapi.json", "/admin/keys", "/admin/reload", "/health/live", "/v1/models", "/nowhere"]
)
async def test_no_answer_leaves_it_to_caches_how_long_they_keep_it(
    client: httpx2.AsyncClient, method: str, path: str
) -> None:
    headers = {"authorization": "Bearer admin-key-0123456789"} if path.startswith("/admin") else {}

    answer = await client.request(method, path, headers=headers)

    assert answer.headers["cache-control"] in ("no-store", "private, max-age=30")
