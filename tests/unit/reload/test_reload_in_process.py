"""A reload in a gateway of one process: what changes with the file, and what a wrong one does."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import trustme

from tests.fakes.gateway import KEY, RunningGateway, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import ScriptedServer
from tests.unit.reload.reloading import ADMIN_KEY, RELOAD_OK, reload, reload_to, settings, write

SECRET = "sk-in-a-wrong-file-0123456789"


async def test_the_next_request_goes_by_the_new_file() -> None:
    async with (
        ScriptedServer([whole("one")]) as one,
        ScriptedServer([whole("two")]) as two,
        running_gateway(settings(one)) as gateway,
    ):
        before = await gateway.chat()
        answer = await reload_to(gateway, settings(two))
        after = await gateway.chat()

    assert (before.json["choices"][0]["message"]["content"], len(one.requests)) == ("one", 1)
    assert (after.json["choices"][0]["message"]["content"], len(two.requests)) == ("two", 1)
    assert [change["path"] for change in answer.json["changed"]] == ["providers.p1.base_url"]
    assert (answer.json["object"], answer.json["ok"], answer.json["trigger"]) == ("reload", True, "POST /admin/reload")


async def test_new_models_aliases_and_admin_keys_are_there_at_once() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        assert (await gateway.chat(model="other")).status == 404
        await reload_to(gateway, {**settings(server), "aliases": {"other": "m"}, "auth": {"admin_key": "k" * 20}})

        assert (await gateway.chat(model="other")).status == 200
        assert (await reload(gateway)).status == 401
        assert (await reload(gateway, key="k" * 20)).status == 200


async def test_keys_are_asked_for_from_the_reload_on_that_says_so() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        assert (await gateway.chat(key=None)).status == 401
        await reload_to(gateway, settings(server, auth={"mode": "open", "admin_key": ADMIN_KEY}))
        assert (await gateway.chat(key=None)).status == 200
        await reload_to(gateway, settings(server))
        assert (await gateway.chat(key=None)).status == 401
        assert (await gateway.chat()).status == 200


async def test_a_wrong_file_changes_nothing_and_is_told_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        assert gateway.metric(RELOAD_OK) == 1
        lines = [
            "version: 1",
            f"auth: {{admin_key: {ADMIN_KEY}}}",
            f"providers: {{p1: {{type: vlm, api_key: {SECRET}}}}}",
            "models: {m: {targets: []}}",
        ]
        write(gateway, "\n".join(lines))

        with caplog.at_level(logging.INFO, "gateway.reload"):
            answer = await reload(gateway)
        last = await last_reload(gateway)

        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_configuration", None)
        places = [(problem["line"], problem["path"]) for problem in answer.error["problems"]]
        assert (3, "providers.p1.type") in places
        assert "config.yaml:3:" in answer.error["message"]
        assert last.json["ok"] is False
        assert last.json["problems"] == answer.error["problems"]
        assert gateway.metric(RELOAD_OK) == 0
        (record,) = caplog.records
        assert record.levelname == "ERROR"
        assert "config.yaml:3:" in record.getMessage()
        for told in (answer.body.decode(), last.body.decode(), record.getMessage()):
            assert SECRET not in told
        assert (await gateway.chat()).status == 200

        await reload_to(gateway, settings(server))
        assert gateway.metric(RELOAD_OK) == 1


async def test_a_file_that_is_gone_is_a_wrong_file() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        gateway.file.unlink()

        answer = await reload(gateway)

        assert (answer.status, answer.error["problems"][0]["line"]) == (400, 0)
        assert "cannot be read" in answer.error["message"]
        assert (await gateway.chat()).status == 200


async def test_what_cannot_be_built_leaves_the_old_configuration_in_force(tmp_path: Path) -> None:
    """The file is right by itself; that the authorities are none shows only when they are read."""
    (tmp_path / "ca.pem").write_text("no certificate")
    tls = {"type": "openai_compatible", "base_url": "https://127.0.0.1:9/v1", "ca_file": str(tmp_path / "ca.pem")}
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        content = settings(server)
        content["providers"]["tls"] = tls
        write(gateway, content)

        answer = await reload(gateway)

        assert (answer.status, answer.error["code"]) == (400, "invalid_configuration")
        assert gateway.metric(RELOAD_OK) == 0
        assert "tls" not in gateway.services.settings.providers
        assert (await gateway.chat()).status == 200


async def test_what_needs_a_restart_is_named_and_the_rest_applies() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        content = {**settings(server), "server": {"port": 1, "stream_keepalive": "7s"}, "aliases": {"a": "m"}}

        answer = await reload_to(gateway, content)

        assert answer.json["needs_restart"] == ["server.port"]
        assert [change["path"] for change in answer.json["changed"]] == ["server.stream_keepalive", "aliases.a"]
        assert gateway.services.settings.server.port == 8080
        assert (await gateway.chat(model="a")).status == 200


async def test_a_dry_run_tells_and_does_nothing() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        write(gateway, {**settings(server), "aliases": {"a": "m"}})
        answer = await reload(gateway, "?dry_run=true")
        write(gateway, "nonsense")
        wrong = await reload(gateway, "?dry_run=true")

        assert [change["path"] for change in answer.json["changed"]] == ["aliases.a"]
        assert answer.json["dry_run"] is True
        assert wrong.status == 400
        assert (await gateway.chat(model="a")).status == 404
        assert gateway.metric(RELOAD_OK) == 1


async def test_an_unchanged_file_builds_nothing() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        before = gateway.services.current

        answer = await reload_to(gateway, json.dumps(settings(server), indent=4))

        assert answer.json["changed"] == []
        assert gateway.services.current is before


async def test_renewed_certificates_are_taken_up_without_a_change_of_the_file(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(_authority())
    content = settings(9)
    content["providers"]["p1"] = {
        "type": "openai_compatible",
        "base_url": "https://127.0.0.1:9/v1",
        "ca_file": str(authority),
    }
    async with running_gateway(content) as gateway:
        first = gateway.services.current
        await reload(gateway)
        same = gateway.services.current
        authority.write_bytes(_authority() + b"\n")
        await reload(gateway)

        assert same is first
        assert gateway.services.current is not first


async def test_whoever_has_no_admin_key_reloads_nothing() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(settings(server)) as gateway:
        write(gateway, "nonsense")

        assert (await reload(gateway, key=KEY)).status == 401
        assert gateway.metric(RELOAD_OK) == 1


async def last_reload(gateway: RunningGateway) -> Answer:
    client = await gateway.connect()
    await client.send(f"GET /admin/reload HTTP/1.1\r\nHost: gateway\r\nx-api-key: {ADMIN_KEY}\r\n\r\n".encode())
    return await client.answer()


def _authority() -> bytes:
    return trustme.CA().cert_pem.bytes()
