"""The simulator shares facts with the rest of the adapters, but no code that acts on them, and bears any input."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.simulator.engine import Simulator
from adapters.simulator.wire import Request
from adapters.types import Operation
from tests.unit.adapters.simulator.asking import CHATS, hear, key_headers, simulator

FOLDER = Path(__file__).resolve().parents[4] / "adapters" / "simulator"
FACTS = {
    "registry",
    "simulator",
    "spec",
    "spec_answer",
    "spec_parts",
    "spec_request",
    "types",
    "validation",
    "vocabulary",
}
SIMULATORS = {name: simulator(name) for name in CHATS}

WORDS = ["", "a", "auto", "json_schema"]
NAMES = ["type", "function", "name", "role", "content", "tool_calls", "arguments", "schema", "json_schema", "text"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-3, 3) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
PARAMS = sorted({name.partition(".")[0] for sim in SIMULATORS.values() for name in sim.spec.params})


def imported_adapters(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {module.split(".")[1] for module in modules if module.startswith("adapters.")}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_no_code_is_shared_with_the_patches(path: Path) -> None:
    assert imported_adapters(path) <= FACTS


def answered(sim: Simulator, operation: Operation, body: Any) -> int:
    path = f"{sim.base_path}{sim.spec.endpoints[operation].path}"
    return hear(sim.handle(Request("POST", path, key_headers(sim), json.dumps(body).encode()))).status


@given(st.sampled_from(CHATS), st.dictionaries(st.sampled_from(PARAMS), JSON, max_size=3))
def test_parameters_of_any_shape_are_answered_or_refused(provider: str, params: dict[str, Any]) -> None:
    sim = SIMULATORS[provider]
    body = {"model": sim.models.names()[0], "messages": [{"role": "user", "content": "hi"}], **params}

    assert answered(sim, Operation.CHAT, body) in (200, 400, 404, 422, 500)


@given(st.sampled_from(CHATS), JSON)
def test_messages_of_any_shape_are_answered_or_refused(provider: str, value: Any) -> None:
    sim = SIMULATORS[provider]
    for messages in (value, [value], [{"role": "assistant", "content": "", "tool_calls": value}]):
        body = {"model": sim.models.names()[0], "messages": messages}
        assert answered(sim, Operation.CHAT, body) in (200, 400, 422, 500)


@given(JSON, JSON)
def test_inputs_and_prompts_of_any_shape_are_answered_or_refused(value: Any, size: Any) -> None:
    sim = SIMULATORS["openai_compatible"]

    assert answered(sim, Operation.EMBEDDINGS, {"model": "m", "input": value, "dimensions": size}) in (200, 400)
    assert answered(sim, Operation.COMPLETIONS, {"model": "m", "prompt": value, "max_tokens": size}) in (200, 400)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
def test_a_body_that_is_none_is_refused(raw: bytes) -> None:
    sim = SIMULATORS["openai_compatible"]
    path = f"{sim.base_path}{sim.spec.endpoints[Operation.CHAT].path}"

    assert hear(sim.handle(Request("POST", path, {}, raw))).status == 400
