"""Whatever stands in a LiteLLM configuration, the import ends in a configuration of ours or in words of its own."""

from __future__ import annotations

import copy
import re
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gateway.importing.litellm import NotLiteLLMError, import_config
from gateway.importing.located import UnreadableYamlError
from gateway.importing.render import render
from gateway.settings import load_settings

EXAMPLES = [
    yaml.safe_load(path.read_text()) for path in sorted((Path(__file__).parents[1] / "fixtures/litellm").glob("*.yaml"))
]
JUNK: st.SearchStrategy[Any] = st.sampled_from([
    None, "", "none", "*", "a/*", "openai/*", "groq/x", "${A", "${A}", "a: b\n- c", "os.environ/", "os.environ/B",
    "os.environ/not a name", "http://u:p@h", "https://h/x?a=b", "http://[", "ü/\u2028\x85", "12", "1e3", "yes", "on",
    "2024-10-21", True, False, 0, -1, 3, 10**12, 0.5, 1e-9, float("nan"), float("inf"), [], {}, ["x"], {"x": "y"}, [[]],
    {"model": "fast"}, "x" * 300, "#", "- a", "'", '"', "{adapter}", "a b", " a ",
])  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something of *value* could be replaced."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return (
        [path, *(place for key, part in inner for place in places(part, (*path, key)))]
        if path
        else [place for key, part in inner for place in places(part, (key,))]
    )


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """An example with a few of its values replaced, at any depth, or keys renamed."""
    tree = copy.deepcopy(draw(st.sampled_from(EXAMPLES)))
    for _ in range(draw(st.integers(1, 4))):
        found = places(tree)
        if not found:
            break
        *way, last = draw(st.sampled_from(found))
        holder = tree
        for part in way:
            holder = holder[part]
        value = copy.deepcopy(draw(JUNK))
        if isinstance(holder, dict) and isinstance(value, str) and draw(st.booleans()):
            holder[value] = holder.pop(last)
        else:
            holder[last] = value
    return str(yaml.safe_dump(tree, allow_unicode=True))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configurations())
def test_what_is_imported_can_be_loaded(text: str) -> None:
    try:
        plan, report = import_config(text)
    except (UnreadableYamlError, NotLiteLLMError):
        return
    written = render(plan, report, "config.yaml")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ours.yaml")
        path.write_text(written)
        names = re.findall(r"(?<!\$)\$\{([A-Za-z0-9_]+)\}", written)
        environ = dict.fromkeys(names, "https://a-value-of-it.example/v1")
        for name in re.findall(r"database_url: \W*\$\{([A-Za-z0-9_]+)\}", written):
            assume(names.count(name) == 1)  # no value is both a database and an API
            environ[name] = "postgresql+asyncpg://u:p@db.example/gateway"
        loaded = load_settings(path, environ=environ)

    assert set(loaded.models) == set(plan.models)
