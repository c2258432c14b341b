"""The page about providers says what the provider files say."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from adapters.registry import load_spec, preset_types, provider_types
from adapters.types import Operation
from adapters.vocabulary import EXTENSIONS, PARAMETERS
from gateway.cli.main import app
from gateway.cli.provider_matrix import GROUPS, page

PAGE = Path(__file__).resolve().parents[3] / "docs" / "providers.md"


def test_the_committed_page_is_what_the_command_writes() -> None:
    written = CliRunner().invoke(app, ["providers", "matrix"])

    assert written.exit_code == 0
    assert PAGE.read_text(encoding="utf-8") == written.stdout, (
        "write it anew: gateway providers matrix > docs/providers.md"
    )


def test_every_provider_that_chats_has_a_column_and_every_preset_a_row() -> None:
    columns = [name for _, names in GROUPS for name in names]

    chatting = [name for name in provider_types() if load_spec(name).endpoints[Operation.CHAT].available]
    assert sorted(columns) == sorted(chatting)
    written = page()
    assert all(f"presets/{name}.yaml) |" in written for name in preset_types())


def test_every_table_has_every_parameter() -> None:
    tables = page().split("\n## ")[1:-1]

    assert len(tables) == len(GROUPS)
    assert all(f"| `{name}` |" in table for table in tables for name in PARAMETERS - EXTENSIONS)


def test_cells_tell_what_is_done() -> None:
    rows = {line.split(" | ")[0]: line for line in page().split("\n## ")[1].splitlines() if line.startswith("| ")}

    assert rows["| `n`"].split(" | ")[2] == "split, n requests"  # Groq
    assert rows["| `max_completion_tokens`"].split(" | ")[4] == "renamed, as `max_tokens`"  # Together
    assert rows["| `logprobs`"].split(" | ")[2] == "refused"
