"""Provider files that are wrong are refused with file and line; overrides change one entry and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from adapters.registry import SpecError, load_spec, read_spec
from adapters.spec import FROM_CONFIG, Patch, ProviderSpec, Support

GOOD = """\
schema: 1
id: acme
name: Acme
kind: hosted
as_of: 2026-11-30
transport:
  base_url: https://api.acme.example/v1
  auth: {header: Authorization, scheme: Bearer, env: ACME_API_KEY}
  unknown_body_fields: {support: rejected, status: 400}
endpoints:
  chat_completions: {path: /chat/completions, support: native}
params:
  max_completion_tokens: {support: renamed, to: max_tokens, src: [docs]}
  n: {support: limited, max: 1, patch: fan_out, src: [transport]}
sources: {docs: chat completions reference}
"""


def _read(tmp_path: Path, text: str) -> ProviderSpec:
    path = tmp_path / "acme.yaml"
    path.write_text(text, encoding="utf-8")
    return read_spec(path)


def test_a_right_file_is_read(tmp_path: Path) -> None:
    spec = _read(tmp_path, GOOD)

    assert spec.params["max_completion_tokens"].to == "max_tokens"
    assert spec.params["n"].patch is Patch.FAN_OUT
    assert spec.transport.auth.header_value("k") == "Bearer k"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("kind: hosted", "knd: hosted", "4:1  knd", "'knd' is not a known key here. Did you mean 'kind'?"),
        ("fan_out", "fan_oot", "14:40  params.n.patch", "'fan_oot' is not allowed here. Did you mean 'fan_out'?"),
        ("  n: {", "  nn: {", "14:3  params.nn", "'nn' is not a parameter. Did you mean 'n'?"),
        ("support: limited", "support: limitd", "14:16  params.n.support", "'limitd' is not allowed here."),
        (", src: [transport]", "", "14:6  params.n", "'src' is missing"),
        ("[transport]", "[doc]", "14:55  params.n.src[0]", "'doc' is not in 'sources'. Did you mean 'docs'?"),
        ("renamed, to: max_tokens", "renamed", "13:26  params.max_completion_tokens", "'renamed' needs 'to'"),
        ("max: 1,", "mx: 1,", "14:25  params.n.mx", "'mx' is not a known key here."),
        ("id: acme", "id: other", "2:5  id", "the id has to be the file's name, 'acme'"),
        ("kind: hosted", "inherits: no\nkind: hosted", "4:11  inherits", "there is no provider file 'no.yaml'"),
        ("as_of: 2026-11-30", "as_of: lately", "5:8  as_of", "found 'lately'; "),
        ("base_url:", "base_uri:", "7:3  transport.base_uri", "Did you mean 'base_url'?"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(tmp_path: Path, old: str, new: str, place: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(SpecError) as caught:
        _read(tmp_path, GOOD.replace(old, new, 1))

    report = str(caught.value)
    assert f"acme.yaml:{place}\n" in report
    assert message in report


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        _read(
            tmp_path, GOOD.replace("fan_out", "fan").replace("kind: hosted", "kind: rented").replace("[docs]", "[doc]")
        )

    assert [problem.path for problem in caught.value.problems] == [
        "params.max_completion_tokens.src[0]",
        "kind",
        "params.n.patch",
    ]


def test_an_inheriting_file_takes_params_and_keeps_its_own_name(tmp_path: Path) -> None:
    _read(tmp_path, GOOD)
    child = tmp_path / "child.yaml"
    child.write_text(
        "schema: 1\nid: child\nname: Child\nkind: engine\nas_of: 2026-11-30\ninherits: acme\n"
        "params: {n: {support: native, src: [transport]}}\nsources: {own: x}\n",
        encoding="utf-8",
    )
    spec = read_spec(child)

    assert spec.name == "Child"
    assert spec.params["n"].support is Support.NATIVE
    assert spec.params["n"].max is None, "an entry is replaced as a whole"
    assert spec.params["max_completion_tokens"].to == "max_tokens"
    assert set(spec.sources) == {"docs", "own"}


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
