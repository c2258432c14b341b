"""Wherever something wrong is put into a good configuration, it is refused, at its place, and nothing else breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.located_yaml import dotted, parse
from gateway.catalog import Catalog
from gateway.package_data import data_path
from gateway.settings import ConfigError, load_settings

# Below these, keys are the operator's own names, or those of another program.
FREE = {("providers",), ("models",), ("aliases",)}
FREE_ENDS = {"headers", "traits"}


def _sections(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict) and path not in FREE and not (path and path[-1] in FREE_ENDS):
        found.append(path)
    for key, inner in items:
        found += _sections(inner, (*path, key))
    return found


EXAMPLE: dict[str, Any] = parse(data_path("config.example.yaml").read_text(encoding="utf-8"), "example").value
SECTIONS = _sections(EXAMPLE)
ENVIRON = {f"{name}_API_KEY": "a-key" for name in ("GROQ", "CEREBRAS", "TOGETHER", "FIREWORKS")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unknown")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(section=st.sampled_from(SECTIONS), key=st.from_regex(r"zz[a-z_]{1,12}", fullmatch=True))
def test_an_unknown_key_is_refused_at_its_place(folder: Path, section: tuple[str | int, ...], key: str) -> None:
    tree = yaml.safe_load(yaml.safe_dump(EXAMPLE))
    inner = tree
    for part in section:
        inner = inner[part]
    inner[key] = 1
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ=ENVIRON)

    place = parse(path.read_text(encoding="utf-8"), "f").keys.get((*section, key))
    problem = next(problem for problem in caught.value.problems if problem.path == dotted((*section, key)))
    assert f"'{key}'" in problem.message
    assert place is not None
    assert (problem.line, problem.column) == (place.line, place.column)


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in items for place in ((*path, key), *_places(inner, (*path, key)))]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "x", "${A}", "${", "*", "30s"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "type", "provider"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(places=st.lists(st.sampled_from(_places(EXAMPLE)), min_size=1, max_size=3), value=ANYTHING)
def test_any_value_anywhere_gives_settings_or_problems_in_the_file(
    folder: Path, places: list[tuple[str | int, ...]], value: Any
) -> None:
    tree = yaml.safe_load(yaml.safe_dump(EXAMPLE))
    for place in places:
        inner = tree
        try:
            for part in place[:-1]:
                inner = inner[part]
            inner[place[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier replacement took it away
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    try:
        found = load_settings(path, environ=ENVIRON)
    except ConfigError as error:
        assert error.problems  # noqa: PT017
        assert all(problem.line and problem.message for problem in error.problems)  # noqa: PT017
    else:
        Catalog.build(found)
