"""Every route states who may use it, and means it."""

from __future__ import annotations

import re

import httpx2
import pytest
from fastapi.routing import RouteContext, iter_route_contexts

from gateway.http.app import SCOPES, create_http_app
from gateway.http.paths import GENERATION
from gateway.scopes import Scope
from gateway.services import Services


def routes_of(services: Services) -> list[RouteContext]:
    return list(iter_route_contexts(create_http_app(services).routes))


async def test_every_route_has_a_scope_and_every_scope_a_route(services: Services) -> None:
    assert {route.path for route in routes_of(services)} == set(SCOPES)


async def test_scopes_hold(services: Services, client: httpx2.AsyncClient) -> None:
    wrong = {"authorization": "Bearer wrong-key-0123456789"}
    admin = {"authorization": "Bearer admin-key-0123456789"}
    for route in routes_of(services):
        assert route.path is not None, "a mounted application has no stated scope"
        path = re.sub(r"\{[^}]*\}", "key_0123456789abcdef", route.path)
        for method in sorted(route.methods or ()):
            statuses = {
                name: (await client.request(method, path, headers=headers)).status_code
                for name, headers in {
                    "nobody": {"authorization": ""},
                    "wrong": wrong,
                    "key": {},
                    "admin": admin,
                }.items()
            }
            scope = SCOPES[route.path]
            refused = {name for name, status in statuses.items() if status in (401, 403)}
            expected = {
                Scope.PUBLIC: set(),
                Scope.KEY: {"nobody", "wrong"},
                Scope.ADMIN: {"nobody", "wrong", "key"},
            }[scope]
            assert refused == expected, f"{method} {path}: {statuses}"


@pytest.mark.parametrize(
    "path",
    [
        "//admin/keys",
        "/admin//keys",
        "/ADMIN/keys",
        "/admin/keys/",
        "/v1/../admin/keys",
        "/admin%2Fkeys",
        "/admin/keys;x",
    ],
)
async def test_no_other_spelling_of_a_path_gets_around_its_scope(client: httpx2.AsyncClient, path: str) -> None:
    """`client` holds a key of the data plane, which opens nothing here."""
    url = httpx2.URL("http://gateway.test", raw_path=path.encode())
    for method in ("GET", "POST"):
        answer = await client.request(method, url, headers={"x-http-method-override": "DELETE"}, json={"name": "mine"})
        assert answer.status_code in (401, 404, 405), f"{method} {path}"


async def test_without_metrics_there_is_no_metrics_route(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = services.settings.telemetry.model_copy(update={"metrics": False})
    monkeypatch.setattr(services, "settings", services.settings.model_copy(update={"telemetry": telemetry}))

    assert "/metrics" not in {route.path for route in routes_of(services)}


async def test_metrics_are_prometheus_text(client: httpx2.AsyncClient, services: Services) -> None:
    services.metrics.request_done("chat_completions", "chat", 200, None, False, 0.1, 0.001)

    answer = await client.get("/metrics", headers={"authorization": ""})

    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert (
        'gateway_requests_total{endpoint="chat_completions",model="chat",status="200",error_code=""} 1' in answer.text
    )


async def test_the_openapi_description_is_whole_and_needs_no_cdn(client: httpx2.AsyncClient) -> None:
    schema = (await client.get("/openapi.json")).json()

    for path in GENERATION:
        assert "post" in schema["paths"]["/v1" + path]
    assert "get" in schema["paths"]["/v1/models"]
    assert "/models" not in schema["paths"]
    assert (await client.get("/docs")).status_code == 404
