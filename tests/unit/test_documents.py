"""What the documents show works: links lead somewhere, and examples do what the text around them says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapters.registry import read_spec
from gateway.catalog import Catalog
from gateway.settings import load_settings
from policies import base

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])


def example(document: str, language: str) -> str:
    """The first block of *language* in *document*, without its indentation."""
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    found = re.search(rf"^( *)```{language}\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return re.sub(rf"^{found[1]}", "", found[2], flags=re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_links_within_the_project_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_paths_named_in_a_document_exist(document: str) -> None:
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:gateway|policies|adapters|local_engine|tests|scripts|docs)/[\w./*-]*)", text))
    made_up = {"adapters/providers/acme.yaml", "adapters/quirks/acme.py", "policies/alphabetical.py"}
    made_up |= {"gateway/data_plane/rerank.py", "adapters/providers/presets/acme.yaml"}

    assert [path for path in named - made_up if not list(CHECKOUT.glob(path.rstrip("/")))] == []


def test_the_configuration_of_the_readme_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(example("README.md", "yaml"))

    catalog = Catalog.build(load_settings(path, environ={"GROQ_API_KEY": "a key"}))

    model = catalog.resolve("gpt-4o-mini")
    assert model is not None
    assert [target.provider for target in model.targets] == ["gpu-box", "groq"]


def test_the_provider_file_of_the_guide_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "acme.yaml"
    path.write_text(example("CONTRIBUTING.md", "yaml"))

    spec = read_spec(path)

    assert spec.id == "acme"
    assert spec.params["max_completion_tokens"].to == "max_tokens"


def test_the_policy_of_the_guide_registers_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    base.load_policies()  # or they would be registered in what is taken away again
    monkeypatch.setattr(base, "_registry", dict(base._registry))

    exec(compile(example("CONTRIBUTING.md", "python"), "alphabetical.py", "exec"), {})

    assert base.get_policy("alphabetical")([]) == []
