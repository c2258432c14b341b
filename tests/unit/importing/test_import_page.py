"""The page about coming from LiteLLM shows configurations that work."""

from __future__ import annotations

import re
from pathlib import Path

from adapters.registry import preset_types, provider_types
from gateway.catalog import Catalog
from gateway.importing.litellm import import_config
from gateway.importing.words import words
from gateway.settings import load_settings

PAGE = (Path(__file__).parents[3] / "docs" / "import-litellm.md").read_text()
THEIRS, BRIDGES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
OURS = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)


def test_what_it_imports_is_what_it_shows(tmp_path: Path) -> None:
    assert OURS is not None
    shown = tmp_path / "ours.yaml"
    shown.write_text(OURS[1])
    environ = {"GROQ_API_KEY": "a-key-of-groq", "ANTHROPIC_API_KEY": "a-key-of-anthropic"}

    plan, report = import_config(THEIRS)

    settings = load_settings(shown, environ=environ)
    assert list(settings.providers) == list(plan.providers)
    assert list(settings.models) == list(plan.models)
    assert settings.aliases == plan.aliases
    assert set(report.variables) == set(environ)


def test_the_bridges_it_shows_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("version: 1\n" + BRIDGES)
    environ = dict.fromkeys(("ANTHROPIC_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "a-value")

    assert Catalog.build(load_settings(path, environ=environ)).resolve("assistant") is not None


def test_every_type_the_import_may_name_exists() -> None:
    named = {name for prefix in words().prefixes.values() for name in (prefix.type, prefix.at_address) if name}

    assert named <= {*provider_types(), *preset_types()}
