"""Keys for one of many fine-tunes, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app

CONFIG = """\
providers: {v: {type: vllm}}
models: {support/*: {targets: [{provider: v, model: "{adapter}", base: b}]}}
aliases: {acme: support/acme}
"""


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ("support/acme,support/*", ""),
        ("support/../x", "no model is called 'support/../x' so far"),
        ("acme", "'acme' is another name of 'support/acme', but keys go by the model's own: --models support/acme"),
    ],
)
def test_a_fine_tune_is_called_just_that(home: Path, models: str, told: str) -> None:
    Path(home, "c.yaml").write_text(CONFIG, encoding="utf-8")

    result = CliRunner().invoke(app, ["keys", "create", "-c", "c.yaml", "--models", models])

    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    assert told in said
    assert told or "no model" not in said
    assert told or "another name" not in said
