"""The YAML reader: which values it gives, where they stand, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.located_yaml import Position, YamlError, dotted, parse


def test_every_key_and_value_knows_its_line_and_column() -> None:
    document = parse("server:\n  port: 80\nlist: [a, {b: c}]\n", "f.yaml")

    assert document.value == {"server": {"port": 80}, "list": ["a", {"b": "c"}]}
    assert document.keys[("server", "port")] == Position(2, 3)
    assert document.values[("server", "port")] == Position(2, 9)
    assert document.values[("list", 1, "b")] == Position(3, 15)


def test_a_path_that_is_not_in_the_file_has_its_parents_place() -> None:
    document = parse("server:\n  port: 80\n", "f.yaml")

    assert document.position(("server", "host")) == Position(2, 3)
    assert document.position(("models",)) == Position(1, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("12", 12),
        ("-0.5", -0.5),
        ("1e3", 1000.0),
        # YAML 1.1 reads these as booleans, octals, sixties and dates; nobody means that in a configuration.
        ("yes", "yes"),
        ("off", "off"),
        ("12:30", "12:30"),
        ("2026-11-30", "2026-11-30"),
        ("0o17", "0o17"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_unquoted_words_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    found = parse(f"key: {text}\n", "f.yaml").value["key"]

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1  a", "'a' stands twice in this mapping; first in line 1"),
        ("a: &x 1\n", "f.yaml:1:4  a", "'&x': anchors are not supported"),
        ("a: *x\n", "f.yaml:1:4  a", "aliases are not supported"),
        ("a:\n  <<: {b: 1}\n", "f.yaml:2:3  a", "merge keys are not supported"),
        ("a: !!python/object:x 1\n", "f.yaml:1:4  a", "tags are not supported"),
        ("a:\n\tb: 1\n", "f.yaml:2:1", "a tab; YAML is indented with spaces"),
        ("a: [1, 2\n", "f.yaml:2:1", "not readable as YAML"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1", "a second document; one file holds one"),
        ("[a, b]: 1\n", "f.yaml:1:1", "a key has to be a word"),
        ("a: \x07\n", "f.yaml:1:4", "a character that YAML does not allow"),
    ],
)
def test_what_the_subset_leaves_out_is_refused_with_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse(text, "f.yaml")

    rendered = str(caught.value.problems[0])
    assert rendered.startswith(place + "\n")
    assert message in rendered


def test_deep_nesting_is_refused_before_it_exhausts_the_stack() -> None:
    with pytest.raises(YamlError, match="nested deeper than 64 levels"):
        parse("[" * 200 + "]" * 200, "f.yaml")


def test_all_duplicate_keys_are_reported_at_once() -> None:
    with pytest.raises(YamlError) as caught:
        parse("a: 1\na: 2\nb: {c: 1, c: 2}\n", "f.yaml")

    assert [problem.path for problem in caught.value.problems] == ["a", "b.c"]


def test_a_path_reads_like_the_documentation_writes_it() -> None:
    assert dotted(("models", "m", "targets", 0, "provider")) == "models.m.targets[0].provider"


@given(st.text(max_size=200))
def test_any_text_gives_a_document_or_problems_with_places(text: str) -> None:
    try:
        places = list(parse(text, "f.yaml").values.values()) or [Position(1, 1)]
    except YamlError as caught:
        places = [Position(problem.line, problem.column) for problem in caught.problems]

    assert places
    assert all(place.line >= 1 and place.column >= 1 for place in places)
