"""LiteLLM's own example configurations become ours: they load, hold no secret, and lose nothing without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.catalog import Catalog
from gateway.importing.litellm import import_config
from gateway.importing.plan import Plan
from gateway.importing.render import render
from gateway.importing.report import Report
from gateway.settings import Settings, load_settings

EXAMPLES = sorted((Path(__file__).parents[2] / "fixtures" / "litellm").glob("*.yaml"))
SECTIONS = ("litellm_settings", "router_settings", "general_settings", "environment_variables")
NOT_REPORTED = ("model_list", "credential_list")


def imported(example: Path) -> tuple[Plan, Report, str]:
    plan, report = import_config(example.read_text())
    return plan, report, render(plan, report, example.name)


def loaded(text: str, folder: Path) -> Settings:
    """The settings of *text*, with every variable it asks for."""
    path = folder / "config.yaml"
    path.write_text(text)
    names = re.findall(r"(?<!\$)\$\{([A-Za-z0-9_]+)\}", text)
    environ = dict.fromkeys(names, "https://a-value-of-a-variable.example/v1")
    return load_settings(path, environ=environ | {"GATEWAY_DATABASE_URL": "sqlite:///./g.db"})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_result_is_a_configuration_of_ours(example: Path, tmp_path: Path) -> None:
    plan, _, text = imported(example)

    settings = loaded(text, tmp_path)

    catalog = Catalog.build(settings)
    assert set(catalog.models) == set(plan.models)
    assert catalog.aliases == plan.aliases


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_no_secret_of_the_file_is_in_the_result_or_the_report(example: Path) -> None:
    secrets = set(re.findall(r"hidden-[a-z0-9-]+", example.read_text()))

    _, report, text = imported(example)

    told = text + "".join(f"{note.path} {note.text}" for note in report.notes) + repr(report.variables)
    assert not [secret for secret in secrets if secret in told]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_setting_and_section_is_told_of(example: Path) -> None:
    _, report, _ = imported(example)

    told = [note.path for note in report.notes]
    root = report.source.value
    for section, content in root.items():
        keys = [f"{section}.{key}" for key in content] if section in SECTIONS else [section]
        for key in keys if section not in NOT_REPORTED else ():
            assert any(path == key or path.startswith((f"{key}.", f"{key}[")) for path in told), key


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_entry_is_told_of_with_its_line(example: Path) -> None:
    _, report, _ = imported(example)

    lines = example.read_text().splitlines()
    for place, entry in enumerate(report.source.value.get("model_list", ())):
        notes = [note for note in report.notes if note.path.startswith(f"model_list[{place}]")]
        assert notes
        first = report.source.line(("model_list", place))
        assert entry["model_name"] in lines[first - 1]
        assert all(note.line >= first or "<<" in example.read_text() for note in notes)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_names_its_source_and_its_lines_are_short(example: Path) -> None:
    assert re.match(r"# After (BerriAI/litellm|LiteLLM docs), ", example.read_text())

    assert max(map(len, imported(example)[2].splitlines())) <= 120


def test_there_are_many_examples() -> None:
    assert len(EXAMPLES) >= 10
