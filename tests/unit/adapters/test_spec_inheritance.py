"""Facts on top of facts: files that inherit, and overrides that change one entry and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from adapters.registry import SpecError, load_spec, read_spec
from adapters.spec import FROM_CONFIG, Patch, Support
from tests.unit.adapters.provider_file import GOOD, read_acme

HEAD = "schema: 1\nid: {id}\nname: X\nkind: engine\nas_of: 2026-11-30\ninherits: {parent}\n"


def _heir(tmp_path: Path, name: str, parent: str, text: str = "") -> Path:
    path = tmp_path / f"{name}.yaml"
    path.write_text(HEAD.format(id=name, parent=parent) + text, encoding="utf-8")
    return path


def test_an_inheriting_file_takes_params_and_keeps_its_own_name(tmp_path: Path) -> None:
    read_acme(tmp_path, GOOD)
    spec = read_spec(
        _heir(tmp_path, "child", "acme", "params: {n: {support: native, src: [own, docs]}}\nsources: {own: x}\n")
    )

    assert spec.name == "X"
    assert spec.params["n"].support is Support.NATIVE
    assert spec.params["n"].max is None, "an entry is replaced as a whole"
    assert spec.params["max_completion_tokens"].to == "max_tokens"
    assert set(spec.sources) == {"docs", "own"}


def test_files_inherit_over_several_levels_and_know_their_line(tmp_path: Path) -> None:
    read_acme(tmp_path, GOOD)
    _heir(tmp_path, "child", "acme", "params: {n: {max: 4}}\nmessages: {content_parts: {image_url: absent}}\n")
    spec = read_spec(_heir(tmp_path, "grandchild", "child", "params: {n: {status: 422}}\n"))

    assert spec.lineage == ("child", "acme")
    assert (spec.params["n"].max, spec.params["n"].status, spec.params["n"].patch) == (4, 422, Patch.FAN_OUT)
    assert spec.messages.content_parts == {"text": "native", "image_url": "absent"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"child": "child"}, "child.yaml:6:11  inherits\n  it inherits from itself: child -> child"),
        ({"child": "b", "b": "c", "c": "b"}, "c.yaml:6:11  inherits\n  it inherits from itself: b -> c -> b"),
        ({"child": "vlm"}, "there is no provider file 'vlm.yaml'. Did you mean 'vllm'?"),
    ],
)
def test_a_file_that_cannot_inherit_is_refused_with_the_line(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    for name, parent in files.items():
        _heir(tmp_path, name, parent)

    with pytest.raises(SpecError) as caught:
        read_spec(tmp_path / "child.yaml")

    assert message in str(caught.value)


def test_a_source_keeps_its_meaning_down_the_line(tmp_path: Path) -> None:
    read_acme(tmp_path, GOOD)
    heir = _heir(tmp_path, "child", "acme", "sources: {docs: something else}\n")

    with pytest.raises(SpecError, match=r"child\.yaml:7:11  sources\.docs\n  'docs' is a source of 'acme' already"):
        read_spec(heir)


def test_overrides_replace_an_entry_and_leave_the_rest() -> None:
    spec = load_spec("vllm")
    changed = spec.with_overrides(
        {
            "params": {"max_completion_tokens": {"support": "renamed", "to": "max_tokens"}},
            "transport": {"keep_alive": False},
        }
    )

    assert changed.params["max_completion_tokens"].to == "max_tokens"
    assert changed.params["max_completion_tokens"].src == (FROM_CONFIG,)
    assert changed.params["n"] == spec.params["n"]
    assert not changed.transport.keep_alive
    assert changed.transport.health == spec.transport.health
    assert spec.params["max_completion_tokens"].support is Support.NATIVE, "the shared spec never changes"


def test_an_override_without_support_changes_only_what_it_names() -> None:
    changed = load_spec("vllm").with_overrides({"params": {"stop": {"max_items": 16}}})

    assert changed.params["stop"].max_items == 16
    assert changed.params["stop"].support is Support.LIMITED
    assert changed.params["stop"].patch is Patch.CLIENT_SIDE_STOP


def test_a_targets_overrides_lie_over_its_providers() -> None:
    ours = {
        "messages": {"single_system": True, "content_parts": {"image_url": "bytes"}},
        "context": {"overflow": "cuts_prompt"},
        "reasoning": {"think_tags": ["qwen3"]},
        "params": {"response_format.json_schema": {"dialect": {"place": "value"}}},
        "errors": {"envelope": "detail"},
    }
    theirs = {"messages": {"single_system": False}, "conflicts": [{"when": ["n>1", "stream"], "result": 400}]}
    changed = load_spec("vllm").with_overrides(ours).with_overrides(theirs)

    assert not changed.messages.wants_single_system("qwen3.8-27b")
    assert changed.messages.content_parts["image_url"] == "bytes"
    assert changed.messages.content_parts["text"] == "native"
    assert changed.context.count_first
    assert changed.reasoning.tags_for("qwen3-8b")
    assert changed.params["response_format.json_schema"].dialect is not None
    assert changed.errors.envelope == "detail"
    assert changed.errors.cases == load_spec("vllm").errors.cases
    assert [condition.param for condition in changed.conflicts[0].conditions] == ["n", "stream"]


def test_no_overrides_give_the_very_same_object() -> None:
    spec = load_spec("vllm")

    assert spec.with_overrides({}) is spec


def test_overrides_are_as_strict_as_a_file() -> None:
    with pytest.raises(ValidationError, match="not a parameter"):
        load_spec("vllm").with_overrides({"params": {"max_tokns": {"support": "native"}}})


@pytest.mark.parametrize("name", ["groq", "local"])
def test_overriding_a_spec_with_its_own_facts_changes_nothing(name: str) -> None:
    spec = load_spec(name)
    same = spec.with_overrides({"messages": spec.messages.model_dump(exclude_unset=True)})

    assert same == spec
