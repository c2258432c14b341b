"""`gateway keys` on a real database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.keys import app

pytestmark = pytest.mark.usefixtures("home")


def _keys(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def _create(*arguments: str) -> dict[str, object]:
    result = _keys("create", "--json", *arguments)
    assert result.exit_code == 0, result.output
    created: dict[str, object] = json.loads(result.stdout)
    return created


def test_create_prints_the_secret_alone_on_standard_output(home: Path) -> None:
    result = _keys("create", "--name", "laptop")

    assert result.exit_code == 0
    assert result.stdout.startswith("gw-")
    assert len(result.stdout) == len("gw-") + 32 + len("\n")
    assert "laptop" in result.stderr
    assert sorted(path.name for path in home.iterdir()) == ["gateway.db", "gateway.pepper"]


def test_what_is_asked_for_is_what_is_stored() -> None:
    created = _create("--name", "team [red]", "--models", "gpt-*, llama", "--expires", "90d")

    shown = json.loads(_keys("show", str(created["id"]), "--json").stdout)

    assert shown == {name: value for name, value in created.items() if name != "secret"}
    assert (shown["name"], shown["models"], shown["state"]) == ("team [red]", ["gpt-*", "llama"], "live")
    assert shown["expires_at"] > shown["created_at"]


def test_a_model_that_a_key_could_never_use_is_told() -> None:
    told = _keys("create", "--models", "smollm2*,local,later").stderr

    assert "'local' is another name of 'smollm2-135m-instruct'" in told
    assert "no model is called 'later' so far" in told
    assert "smollm2*" not in told


def test_the_secret_is_shown_by_no_other_command() -> None:
    secret = str(_create("--name", "laptop")["secret"])

    for arguments in (
        ["list"],
        ["list", "--json"],
        ["show", "key_"],
        ["show", "gw-", "--json"],
        ["revoke", "gw-", "-y"],
    ):
        result = _keys(*arguments)
        assert result.exit_code == 0
        assert "laptop" in result.output
        assert secret not in result.output


def test_an_existing_key_is_imported_from_standard_input() -> None:
    result = _keys("create", "--secret-stdin", stdin="sk-from-the-old-gateway\r\n")

    assert (result.exit_code, result.stdout) == (0, "")
    assert _keys("create", "--secret-stdin", stdin="sk-from-the-old-gateway").exit_code == 1
    assert _keys("create", "--secret-stdin", stdin="has a space in it\n").exit_code == 1
    assert _keys("create", "--secret-stdin", stdin="").exit_code == 1


def test_a_list_shows_whole_ids_however_narrow_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    ids = [str(_create("--name", f"key {number}")["id"]) for number in range(3)]

    lines = _keys("list").stdout.splitlines()

    assert sorted(line.split()[0] for line in lines[1:]) == sorted(ids)
    assert len({line.index("live") for line in lines[1:]}) == 1


def test_an_empty_list_says_how_to_make_a_key_and_is_still_json_when_asked() -> None:
    assert "gateway keys create" in _keys("list").stderr
    assert json.loads(_keys("list", "--json").stdout) == []


def test_revoking_needs_a_yes_where_nobody_can_be_asked() -> None:
    key_id = str(_create()["id"])

    refused = _keys("revoke", key_id)
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert json.loads(_keys("show", key_id, "--json").stdout)["state"] == "live"

    assert _keys("revoke", key_id, "--yes").exit_code == 0
    assert json.loads(_keys("show", key_id, "--json").stdout)["state"] == "revoked"
    assert _keys("revoke", key_id, "--yes").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "key_nobody"], 1, "gateway keys list"),
        (["revoke", "key_nobody", "-y"], 1, "no key"),
        (["create", "--expires", "5"], 2, "Did you mean '5s'"),
        (["create", "--expires", "0s"], 1, "in the future"),
        (["create", "--models", "a,,b"], 1, "pattern"),
        (["create", "gw-a-secret-as-an-argument"], 2, "unexpected extra argument"),
    ],
)
def test_mistakes_end_with_a_code_and_a_sentence(arguments: list[str], code: int, said: str) -> None:
    result = _keys(*arguments)

    assert result.exit_code == code
    assert said in result.stderr


def test_a_database_out_of_reach_ends_with_4_and_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_DATABASE_URL", "postgresql://me:hunter2@127.0.0.1:1/gateway")

    result = _keys("list")

    assert result.exit_code == 4
    assert "cannot be reached" in result.stderr
    assert "hunter2" not in result.output


def test_the_database_is_the_one_of_the_configuration_file(home: Path) -> None:
    (home / "config.yaml").write_text(
        "version: 1\n"
        "storage: {database_url: 'sqlite:///./elsewhere.db'}\n"
        "providers: {local: {type: local}}\n"
        "models: {small: {targets: [{provider: local}]}}\n"
    )

    result = _keys("create", "-c", "config.yaml")

    assert result.exit_code == 0, result.output
    assert (home / "elsewhere.db").exists()
    assert not (home / "gateway.db").exists()


def test_the_command_works_as_a_process_of_its_own(home: Path) -> None:
    command = [sys.executable, "-m", "gateway", "keys", "create", "--json"]

    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=60, check=True)

    assert json.loads(done.stdout)["secret"].startswith("gw-")
