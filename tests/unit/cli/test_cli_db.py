"""`gateway db` on a real database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.db import app
from gateway.storage.schema import HEAD

pytestmark = pytest.mark.usefixtures("home")


def test_current_tells_an_old_schema_by_its_exit_code_and_upgrade_mends_it(home: Path) -> None:
    run = CliRunner().invoke

    before = run(app, ["current"])
    assert before.exit_code == 1
    assert "gateway db upgrade" in before.stderr
    assert not (home / "gateway.db").exists()  # looking makes nothing

    upgraded = run(app, ["upgrade", "--json"])
    assert upgraded.exit_code == 0
    assert json.loads(upgraded.stdout) | {"database": ""} == {"database": "", "from": None, "to": HEAD}

    after = run(app, ["current", "--json"])
    assert after.exit_code == 0
    assert json.loads(after.stdout)["is_current"] is True
    assert "already" in run(app, ["upgrade"]).stdout


def test_a_file_that_is_no_database_ends_the_command_with_a_sentence(home: Path) -> None:
    (home / "gateway.db").write_text("no database at all " * 50)

    result = CliRunner().invoke(app, ["upgrade"])

    assert result.exit_code == 1
    assert "no SQLite database" in result.stderr
