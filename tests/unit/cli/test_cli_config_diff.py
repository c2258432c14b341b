"""`gateway config diff`: what a reload would change, told by the running gateway or by two files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.main import command_app
from tests.fakes.gateway import config, running_gateway
from tests.unit.reload.reloading import ADMIN_KEY, settings, write


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_app("config"), ["diff", *arguments])


def put(folder: Path, name: str, **sections: Any) -> str:
    path = folder / name
    path.write_text(json.dumps({**settings(9), **sections}))
    return str(path)


def test_two_files_are_compared_without_a_gateway(tmp_path: Path) -> None:
    old = put(tmp_path, "old.yaml", aliases={"gone": "m"})
    new = put(tmp_path, "new.yaml", aliases={"come": "m"}, server={"port": 1, "stream_keepalive": "9s"})

    done = run("-c", new, "--against", old)

    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "~ server.stream_keepalive: 15s -> 9s",
        "- aliases.gone: m",
        "+ aliases.come: m",
        "! server.port needs a restart",
    ]


def test_changed_secrets_are_told_and_not_shown(tmp_path: Path) -> None:
    content = config(9)
    content["providers"]["p1"]["api_key"] = "sk-another-secret-0123456789"

    done = run("-c", put(tmp_path, "new.yaml", **content), "--against", put(tmp_path, "old.yaml"), "--json")

    (change,) = json.loads(done.stdout)["changed"]
    assert change["path"] == "providers.p1.api_key"
    assert "secret" not in done.stdout


def test_nothing_to_change_is_said(tmp_path: Path) -> None:
    file = put(tmp_path, "config.yaml")

    assert run("-c", file, "--against", file).stdout == "A reload would change nothing.\n"


async def test_the_running_gateway_is_asked_and_changes_nothing() -> None:
    async with running_gateway(settings(9)) as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        write(gateway, {**settings(9), "aliases": {"a": "m"}})
        done = await asyncio.to_thread(run, "-c", str(gateway.file), "--url", url)
        aliases = gateway.services.settings.aliases

    assert done.exit_code == 0, done.output
    assert done.stdout == "+ aliases.a: m\n"
    assert aliases == {}


@pytest.mark.parametrize(
    ("sections", "code", "words"),
    [
        ({}, 4, "no gateway answers"),
        ({"auth": {}}, 1, "admin key"),
        ({"nonsense": 1}, 3, "nonsense"),
    ],
)
def test_what_stands_in_the_way_is_a_sentence_with_its_exit_code(
    tmp_path: Path, sections: dict[str, Any], code: int, words: str
) -> None:
    from gateway.config.problems import ConfigError

    done = run("-c", put(tmp_path, "config.yaml", **sections), "--url", "http://127.0.0.1:9")

    if isinstance(done.exception, ConfigError):  # `main` turns it into exit code 3
        assert (code, words in str(done.exception)) == (3, True)
    else:
        assert (done.exit_code, words in done.output) == (code, True), done.output


async def test_a_wrong_admin_key_is_told(tmp_path: Path) -> None:
    async with running_gateway(settings(9)) as gateway:
        file = put(tmp_path, "config.yaml", auth={"admin_key": ADMIN_KEY[::-1]})
        done = await asyncio.to_thread(run, "-c", file, "--url", f"http://127.0.0.1:{gateway.port}")

    assert done.exit_code == 1
    assert "401" in done.output
