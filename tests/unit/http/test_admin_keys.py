"""``/admin/keys`` over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from gateway.errors import PermissionDeniedError
from gateway.http.admin_access import AdminAccess
from gateway.services import Services

ADMIN = {"authorization": "Bearer admin-key-0123456789"}


@pytest.fixture
def admin(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    client.headers.update(ADMIN)
    return client


async def _create(admin: httpx2.AsyncClient, **body: object) -> dict[str, Any]:
    answer = await admin.post("/admin/keys", json={"name": "made", **body})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def test_a_key_made_here_works_on_the_data_plane(admin: httpx2.AsyncClient) -> None:
    created = await _create(admin, models=["chat"])

    models = await admin.get("/v1/models", headers={"authorization": f"Bearer {created['secret']}"})

    assert [model["id"] for model in models.json()["data"]] == ["chat", "gpt-4o-mini"]


async def test_the_secret_is_shown_once(admin: httpx2.AsyncClient) -> None:
    created = await _create(admin, models=["gpt-*"], expires_in_seconds=3600)
    shown = await admin.get(f"/admin/keys/{created['id']}")
    listed = await admin.get("/admin/keys")

    secret = created.pop("secret")
    assert shown.json() == created
    assert listed.json()["data"][0] == created
    assert secret not in shown.text + listed.text
    assert (created["object"], created["prefix"], created["models"]) == ("key", secret[:8], ["gpt-*"])


async def test_an_existing_key_is_imported_once(admin: httpx2.AsyncClient) -> None:
    created = await _create(admin, secret="sk-from-the-old-gateway")
    again = await admin.post("/admin/keys", json={"name": "again", "secret": "sk-from-the-old-gateway"})

    assert created["secret"] == "sk-from-the-old-gateway"
    assert again.status_code == 400
    assert "exists already" in again.json()["error"]["message"]
    assert "sk-from-the-old-gateway" not in again.text


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "x", "models": "gpt-*"}, "models"),
        ({"name": "x", "models": [""]}, None),
        ({"name": "x", "expires_in_seconds": 0}, "expires_in_seconds"),
        ({"name": "x", "expires_in_seconds": "60"}, "expires_in_seconds"),
        ({"name": "x", "expires_in_seconds": 1e300}, None),
        ({"name": "x", "secret": "short"}, None),
        ({"name": "x", "budget": 5}, "budget"),
        ({"name": "x", "id": "key_0123456789abcdef"}, "id"),
    ],
)
async def test_a_body_with_anything_wrong_or_unknown_is_refused(
    admin: httpx2.AsyncClient, body: dict[str, object], param: str | None
) -> None:
    before = (await admin.get("/admin/keys")).json()

    answer = await admin.post("/admin/keys", json=body)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.json()["error"]["param"] == param
    assert (await admin.get("/admin/keys")).json() == before


async def test_a_refused_secret_is_not_repeated(admin: httpx2.AsyncClient) -> None:
    answer = await admin.post("/admin/keys", json={"name": "x", "secret": ["a secret in a list"]})

    assert answer.status_code == 400
    assert "a secret in a list" not in answer.text


async def test_pages_cover_all_keys_once(admin: httpx2.AsyncClient) -> None:
    for number in range(5):
        await _create(admin, name=f"key {number}")
    seen: list[str] = []
    query: dict[str, str | int] = {"limit": 3}
    while True:
        page = (await admin.get("/admin/keys", params=query)).json()
        assert len(page["data"]) <= 3
        seen += [key["name"] for key in page["data"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert sorted(seen) == ["all", *(f"key {number}" for number in range(5)), "narrow"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "cursor=key_ffffffffffffffff", "cursor=%27%20OR%201"]
)
async def test_a_wrong_page_is_refused(admin: httpx2.AsyncClient, query: str) -> None:
    answer = await admin.get(f"/admin/keys?{query}")

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == query.partition("=")[0]


async def test_a_revoked_key_is_refused_at_once_and_revoking_again_changes_nothing(admin: httpx2.AsyncClient) -> None:
    created = await _create(admin)
    use = {"authorization": f"Bearer {created['secret']}"}
    assert (await admin.get("/v1/models", headers=use)).status_code == 200

    first = await admin.delete(f"/admin/keys/{created['id']}")

    assert (await admin.get("/v1/models", headers=use)).status_code == 401
    second = await admin.delete(f"/admin/keys/{created['id']}")
    assert first.json()["revoked_at"] is not None
    assert (second.status_code, second.json()) == (200, first.json())


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("asked", ["key_ffffffffffffffff", "sk-nar", "%25"])
async def test_only_a_whole_id_that_exists_is_found(admin: httpx2.AsyncClient, method: str, asked: str) -> None:
    answer = await admin.request(method, f"/admin/keys/{asked}")

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "key_not_found"


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": ""},
        {"authorization": "Bearer admin-key-0123456780"},
        {"authorization": "Bearer sk-existing-key-0123456789"},
        {"authorization": "admin-key-0123456789"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("GET", ""), ("GET", "/key_1"), ("DELETE", "/key_1")])
async def test_nothing_is_done_without_the_admin_key(
    client: httpx2.AsyncClient, services: Services, method: str, path: str, headers: dict[str, str]
) -> None:
    before = await services.keys.last_change()

    answer = await client.request(method, f"/admin/keys{path}", headers=headers, json={"name": "x"})

    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert await services.keys.last_change() == before


@pytest.mark.parametrize("name", ["x-api-key", "api-key"])
async def test_the_admin_key_is_taken_from_the_other_headers_too(client: httpx2.AsyncClient, name: str) -> None:
    assert (await client.get("/admin/keys", headers={name: "admin-key-0123456789"})).status_code == 200


@pytest.mark.parametrize("unset", [None, SecretStr("")])
async def test_without_an_admin_key_the_door_stays_shut_and_says_which_setting_opens_it(
    unset: SecretStr | None,
) -> None:
    with pytest.raises(PermissionDeniedError, match=r"auth\.admin_key.*GATEWAY_ADMIN_KEY") as caught:
        AdminAccess(lambda: unset).check([(b"authorization", b"Bearer ")])

    assert caught.value.status == 403


async def test_whoever_lacks_the_admin_key_is_told_which_key_is_wanted(client: httpx2.AsyncClient) -> None:
    refused = await client.get("/admin/keys", headers={"authorization": "Bearer wrong"})

    assert "Send the admin key (auth.admin_key, or GATEWAY_ADMIN_KEY)" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "param"),
    [("GET", "/admin/keys?after=key_1", "after"), ("POST", "/admin/reload?dryrun=true", "dryrun")],
)
async def test_a_misspelt_parameter_is_refused_and_nothing_done(
    admin: httpx2.AsyncClient, services: Services, method: str, path: str, param: str
) -> None:
    before = services.reloads.last

    refused = await admin.request(method, path)

    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    assert services.reloads.last is before


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"", "application/json", "The body is missing. Send a JSON object"),
        (b'{"name": "x"}', "text/plain", "Send it with 'Content-Type: application/json'"),
    ],
)
async def test_a_body_that_is_not_there_or_not_said_to_be_json_is_told(
    admin: httpx2.AsyncClient, body: bytes, kind: str, message: str
) -> None:
    refused = await admin.post("/admin/keys", content=body, headers={"content-type": kind})

    assert refused.status_code == 400
    assert message in refused.json()["error"]["message"]
