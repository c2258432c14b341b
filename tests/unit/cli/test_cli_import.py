"""`gateway import litellm` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.main import command_app
from gateway.settings import load_settings

EXAMPLE = Path(__file__).parents[2] / "fixtures" / "litellm" / "other_names.yaml"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_app("import"), ["litellm", *arguments])


def test_it_prints_the_configuration_and_beside_it_the_report() -> None:
    done = run(str(EXAMPLE))

    assert done.exit_code == 0
    assert "type: ollama" in done.stdout
    assert "mapped" in done.stderr


def test_it_writes_a_file_that_loads_and_does_not_overwrite_it(tmp_path: Path) -> None:
    place = tmp_path / "ours.yaml"

    first = run(str(EXAMPLE), "-o", str(place))
    again = run(str(EXAMPLE), "-o", str(place))
    forced = run(str(EXAMPLE), "-o", str(place), "--force")

    assert (first.exit_code, again.exit_code, forced.exit_code) == (0, 1, 0)
    assert "--force" in again.stderr
    assert set(load_settings(place, environ={}).models) == {"text-davinci-003", "gpt-4", "gpt-3.5-turbo"}


def test_its_json_holds_every_note_with_its_line() -> None:
    report = json.loads(run(str(EXAMPLE), "--json").stdout)

    assert {"fate": "mapped", "line": 12, "path": "model_list[2].litellm_params.temperature",
            "text": "temperature: sent where the client says nothing"} in report["notes"]  # fmt: skip
    assert "version: 1" in report["config"]


@pytest.mark.parametrize("text", ["a: [", "a: 1"])
def test_what_is_none_of_litellms_is_refused_with_a_wrong_configurations_code(tmp_path: Path, text: str) -> None:
    place = tmp_path / "theirs.yaml"
    place.write_text(text)

    assert run(str(place)).exit_code == 3


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = run(str(tmp_path / "none.yaml"))

    assert done.exit_code == 2
    assert "cannot be read" in done.stderr
