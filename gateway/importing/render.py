"""Writes an imported configuration as YAML that people like to read: short lines, and a remark where one is due."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.located_yaml import scalar
from gateway.importing.plan import Plan, Tree
from gateway.importing.references import Reference
from gateway.importing.report import Fate, Note, Report

_WIDTH = 118
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*\Z")
_REMARKS = (Fate.APPROXIMATED, Fate.NOT_YET, Fate.DROPPED)


def render(plan: Plan, report: Report, source: str) -> str:
    """The file's text. *source* names the file that was imported."""
    lines = [
        f"# Made by `gateway import litellm` from {_one_line(source)}. Read the remarks, then: gateway check -c FILE",
        *_variables(report),
        "version: 1",
    ]
    for name, section in plan.sections.items():
        lines += ["", *_comments(_of_section(report, name), 0), *_entry(0, name, section)]
    if plan.providers:
        lines += ["", "providers:"]
        for name, settings in plan.providers.items():
            lines += [*_comments(_about(report, "providers", name), 2), *_entry(2, name, settings)]
    if plan.models:
        lines += [
            "",
            'models:  # what clients put in "model"; targets are tried in the order of the list, or by their route',
        ]
        for name, model in plan.models.items():
            lines += [*_comments(_about(report, "models", name), 2), *_model(name, model)]
    if plan.aliases:
        lines += ["", *_entry(0, "aliases", plan.aliases)]
    if plan.expose_provider_models:
        lines += ["", "expose_provider_models: true  # no model was imported: clients write provider/model"]
    lines += _not_imported(report, plan.sections)
    return "\n".join(lines) + "\n"


def _variables(report: Report) -> list[str]:
    if not report.variables:
        return []
    width = max(map(len, report.variables))
    return [
        "#",
        "# It needs these variables:",
        *(f"#   {name:{width}}  {_one_line(purpose)}" for name, purpose in report.variables.items()),
    ]


def _model(name: str, model: Tree) -> list[str]:
    lines = [f"  {_word(name)}:"]
    alone = f"    targets: [{_flow(model['targets'][0])}]"
    single = len(model["targets"]) == 1 and len(alone) <= _WIDTH
    lines.append(alone if single else "    targets:")
    for target in () if single else model["targets"]:
        flow = _flow(target)
        if len(flow) <= _WIDTH - 8:
            lines.append(f"      - {flow}")
        else:
            first, *rest = [line for key, value in target.items() for line in _entry(8, key, value)]
            lines += [f"      - {first.strip()}", *rest]
    for key, value in model.items():
        if key != "targets":
            lines += _entry(4, key, value)
    return lines


def _entry(indent: int, name: str, value: Any) -> list[str]:
    """One key: in one line where that fits, else its members below it."""
    pad = " " * indent
    line = f"{pad}{_word(name)}: {_flow(value)}"
    if len(line) <= _WIDTH or not isinstance(value, Mapping):
        return [line]
    return [f"{pad}{_word(name)}:", *(inner for key, part in value.items() for inner in _entry(indent + 2, key, part))]


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_word(str(key))}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.12f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return str(value)
    return _word(value if isinstance(value, Reference) else str(value).replace("${", "$${"))


def _word(text: str) -> str:
    """*text* without quotes where it then still means itself, to us and to editors that know an older YAML."""
    if (
        _PLAIN.match(text)
        and isinstance(scalar(text), str)
        and text.lower() not in ("y", "n", "yes", "no", "on", "off")
    ):
        return text if not text[0].isdigit() or text.endswith(("s", "m", "h", "d")) else json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


def _comments(notes: Iterable[Note], indent: int) -> list[str]:
    pad = " " * indent + "# "
    return [
        line
        for note in notes
        for line in textwrap.wrap(
            f"{note.fate.value} (line {note.line}): {_one_line(note.text)}",
            _WIDTH,
            initial_indent=pad,
            subsequent_indent=pad + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def _about(report: Report, section: str, name: str) -> list[Note]:
    return [note for note in report.of(*_REMARKS) if note.about == (section, name)]


def _of_section(report: Report, name: str) -> list[Note]:
    return [note for note in report.of(Fate.APPROXIMATED) if note.about is None and note.text.startswith(f"{name}.")]


def _not_imported(report: Report, sections_written: Iterable[str]) -> list[str]:
    """What stands nowhere else in the file."""
    sections = tuple(f"{name}." for name in sections_written)
    left = [note for note in report.of(*_REMARKS) if note.about is None and not note.text.startswith(sections)]
    if not left:
        return []
    return ["", "# Of the rest of the file:", *_comments(left, 0)]


def _one_line(text: str) -> str:
    return " ".join(text.split())
