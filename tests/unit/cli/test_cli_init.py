"""`gateway init` writes files that load, and destroys none."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.catalog import Catalog
from gateway.cli.init import from_environment
from gateway.cli.main import command_app
from gateway.package_data import data_path
from gateway.settings import load_settings, settings_from_environment


def test_it_writes_the_example(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    done = CliRunner().invoke(command_app("init"), ["-o", str(path)])

    assert done.exit_code == 0
    assert f"gateway serve -c {path}" in done.stdout
    assert path.read_bytes() == data_path("config.example.yaml").read_bytes()


def test_it_never_overwrites_unasked(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("own words", encoding="utf-8")
    refused = CliRunner().invoke(command_app("init"), ["-o", str(path)])

    assert refused.exit_code == 1
    assert "--force overwrites it" in refused.stderr
    assert path.read_text(encoding="utf-8") == "own words"
    assert CliRunner().invoke(command_app("init"), ["-o", str(path), "--force"]).exit_code == 0
    assert "own words" not in path.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(command_app("init"), ["-o", str(tmp_path / "absent" / "config.yaml")])

    assert done.exit_code == 1
    assert "cannot be written: No such file or directory" in done.stderr


def test_a_dash_prints(tmp_path: Path) -> None:
    done = CliRunner().invoke(command_app("init"), ["-o", "-"])

    assert done.stdout == data_path("config.example.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("environ", [{}, {"GROQ_API_KEY": "gsk_secret", "TOGETHER_API_KEY": "tg_secret"}])
def test_from_env_serves_what_no_file_would_and_holds_no_key(tmp_path: Path, environ: dict[str, str]) -> None:
    text = from_environment(environ)
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")

    written = Catalog.build(load_settings(path, environ=environ))
    unwritten = Catalog.build(settings_from_environment(environ))
    assert list(written.models) == list(unwritten.models)
    assert set(written.exposed) == set(unwritten.exposed)
    assert written.aliases == unwritten.aliases
    assert "secret" not in text
