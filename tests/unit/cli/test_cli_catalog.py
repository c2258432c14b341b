"""`gateway catalog sync`: a snapshot from price lists in files, wheels or installed distributions, never imported."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from adapters.catalogue.snapshot import read_snapshot
from gateway.cli.main import command_app
from tests.unit.adapters.catalogue.price_lists import genai_list, litellm_list, priced

MEMBER = "litellm/model_prices_and_context_window_backup.json"
LISTED = "ModelInfo(id='m', prices=ModelPrice(input_mtok=Decimal('0.1'), output_mtok=Decimal('0.4')))"


@pytest.fixture
def second(home: Path) -> Path:
    path = home / "data.py"
    path.write_bytes(genai_list(LISTED))
    return path


def sync(home: Path, second: Path, *arguments: str) -> Result:
    command = ["sync", "--genai-prices", str(second), "--output", str(home / "snapshot.json"), *arguments]
    return CliRunner().invoke(command_app("catalog"), command)


def price_file(home: Path, usd: float) -> str:
    path = home / "prices.json"
    path.write_bytes(litellm_list(groq__m=priced(usd, 4e-07)))
    return str(path)


def begin(home: Path, second: Path) -> None:
    """A snapshot that knows one price, in place of the shipped one."""
    assert sync(home, second, "--litellm", price_file(home, 1e-07), "--accept", "all").exit_code == 0


def test_a_price_file_becomes_a_snapshot_that_names_it(home: Path, second: Path) -> None:
    begin(home, second)

    snapshot = read_snapshot((home / "snapshot.json").read_bytes())
    assert snapshot.models["groq"]["m"].input_ptoken == 100_000
    assert [(source.name, source.file) for source in snapshot.sources] == [
        ("litellm", "prices.json"),
        ("genai_prices", "data.py"),
    ]


def test_a_price_that_jumps_leaves_the_snapshot_as_it_was_until_accepted(home: Path, second: Path) -> None:
    begin(home, second)
    before = (home / "snapshot.json").read_bytes()

    refused = sync(home, second, "--litellm", price_file(home, 9e-07))
    kept = (home / "snapshot.json").read_bytes()
    accepted = sync(home, second, "--litellm", price_file(home, 9e-07), "--accept", "groq/m")

    assert refused.exit_code == 1
    assert "groq/m  input: 0.1 -> 0.9 USD" in refused.stdout
    assert kept == before
    assert accepted.exit_code == 0
    assert (home / "snapshot.json").read_bytes() != before


def test_a_dry_run_tells_the_changes_and_writes_nothing(home: Path, second: Path) -> None:
    begin(home, second)
    before = (home / "snapshot.json").read_bytes()

    done = sync(home, second, "--litellm", price_file(home, 2e-07), "--dry-run", "--json")

    assert json.loads(done.stdout)["changes"] == [{"model": "groq/m", "text": "input: 0.1 -> 0.2 USD"}]
    assert (home / "snapshot.json").read_bytes() == before


def wheel(home: Path, version: str) -> str:
    path = home / f"litellm-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, litellm_list(groq__m=priced(1e-07, 4e-07)))
    return str(path)


def test_the_list_is_read_out_of_a_wheel_with_its_version(home: Path, second: Path) -> None:
    done = sync(home, second, "--litellm", wheel(home, "9.9.9"), "--accept", "all")

    assert done.exit_code == 0
    assert read_snapshot((home / "snapshot.json").read_bytes()).sources[0].version == "9.9.9"


def test_a_compromised_release_is_not_believed(home: Path, second: Path) -> None:
    done = sync(home, second, "--litellm", wheel(home, "1.82.8"))

    assert done.exit_code == 1
    assert "compromised" in done.stderr


def test_an_installed_list_is_read_without_importing_it(
    home: Path, second: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "litellm").mkdir()
    (home / "litellm" / "__init__.py").write_text("raise RuntimeError('imported')")
    (home / MEMBER).write_bytes(litellm_list(groq__m=priced(1e-07, 4e-07)))
    (home / "litellm-9.9.9.dist-info").mkdir()
    (home / "litellm-9.9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: litellm\nVersion: 9.9.9\n")
    monkeypatch.setattr(sys, "path", [str(home), *sys.path])

    done = sync(home, second, "--accept", "all")

    assert done.exit_code == 0, done.output
    assert read_snapshot((home / "snapshot.json").read_bytes()).sources[0].version == "9.9.9"
    assert "litellm" not in sys.modules


@pytest.mark.parametrize("content", ["{}", "[]", "no json"])
def test_a_file_that_is_no_price_list_leaves_no_snapshot(home: Path, second: Path, content: str) -> None:
    (home / "wrong.json").write_text(content)

    done = sync(home, second, "--litellm", str(home / "wrong.json"))

    assert done.exit_code == 1
    assert not (home / "snapshot.json").exists()


def test_prices_are_not_fetched_over_plain_http(home: Path, second: Path) -> None:
    done = sync(home, second, "--litellm", "http://127.0.0.1:1/prices.json")

    assert done.exit_code == 1
    assert "https" in done.stderr
