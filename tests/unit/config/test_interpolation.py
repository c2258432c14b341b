"""References in a file: variables, defaults, secret files, and what happens when they lead nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.located_yaml import parse
from gateway.config.interpolate import UNRESOLVED, interpolate


def _value(text: str, environ: Mapping[str, str], base: Path = Path()) -> Any:
    value, failed = interpolate(parse(f"k: {text}\n", "f"), environ, base)
    assert not failed
    return value["k"]


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("${A}", {"A": "x"}, "x"),
        ("'${A}'", {"A": "x"}, "x"),
        ("http://${H}:${P}/v1", {"H": "h", "P": "80"}, "http://h:80/v1"),
        ("${A:-d}", {}, "d"),
        ("${A:-d}", {"A": ""}, "d"),
        ("${A:-d}", {"A": "x"}, "x"),
        ("'${A:-}'", {}, ""),
        ("${A:-sqlite+aiosqlite:///./x.db}", {}, "sqlite+aiosqlite:///./x.db"),
        ("${A}", {"A": ""}, ""),
        ("$${A}", {}, "${A}"),
        ("$A costs $5", {"A": "x"}, "$A costs $5"),
        # What a variable holds is a value, not a template.
        ("${A}", {"A": "${B}", "B": "x"}, "${B}"),
        ("[1, {a: '${A}'}]", {"A": "x"}, [1, {"a": "x"}]),
    ],
)
def test_references_are_replaced(text: str, environ: dict[str, str], expected: object) -> None:
    assert _value(text, environ) == expected


def test_a_secret_file_is_read_beside_the_configuration_without_its_last_newline(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n", encoding="utf-8")

    assert _value("${file:key}", {}, tmp_path) == "s3cret"
    assert _value(f"${{file:{tmp_path / 'key'}}}", {}) == "s3cret"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${A}", "environment variable A is not set. Export it, or write ${A:-default}."),
        ("${1A}", "'${1A}' is no reference.  (${VAR}, ${VAR:-default}, ${file:PATH})"),
        ("'${}'", "'${}' is no reference."),
        ("'${A'", "'${' without '}'"),
        ("${file:absent}", "absent cannot be read: No such file or directory"),
        ("'${file:}'", "cannot be read"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told_by_path(tmp_path: Path, text: str, message: str) -> None:
    value, failed = interpolate(parse(f"k: {text}\n", "f"), {}, tmp_path)

    assert value == {"k": UNRESOLVED}
    assert message in failed[("k",)]


def test_a_missing_provider_key_is_told_with_the_way_to_disable_the_provider() -> None:
    document = parse("providers: {groq: {api_key: '${GROQ_API_KEY}'}}\n", "f")
    _, failed = interpolate(document, {}, Path())

    assert failed[("providers", "groq", "api_key")].endswith("or write ${GROQ_API_KEY:-} to disable this provider.")


def test_an_enormous_secret_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 70_000)
    _, failed = interpolate(parse("k: ${file:big}\n", "f"), {}, tmp_path)

    assert "is larger than 64 KiB" in failed[("k",)]
