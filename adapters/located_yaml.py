"""Reads YAML into plain values and remembers where each of them stands, so that an error can name line and column.

The subset is YAML 1.2's core: mappings with string keys, sequences, strings, numbers, booleans and null. Anchors,
aliases, merge keys and tags are refused: a value that is written in one place and used in another has no position
that would help the reader of an error, and a file of nested aliases can grow without bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where something stands in a file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file; *line* 0 means the problem has no place in a file."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        head = f"{place}  {self.path}" if self.path else place
        return f"{head}\n  {self.message}"


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its value, and for every path the position of its key and of its value."""

    file: str
    value: Any
    keys: Mapping[Path, Position] = field(default_factory=dict)
    values: Mapping[Path, Position] = field(default_factory=dict)

    def position(self, path: Path, *, of_key: bool = False) -> Position:
        """The position of *path*, or of its nearest ancestor that stands in the file."""
        if of_key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Position(1, 1))

    def problem(self, path: Path, message: str, *, of_key: bool = False) -> Problem:
        """A `Problem` at the place of *path*."""
        place = self.position(path, of_key=of_key)
        return Problem(self.file, place.line, place.column, dotted(path), message)


class YamlError(Exception):
    """The file is no YAML of the subset; *problems* are all that were found."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def dotted(path: Path) -> str:
    """``("models", "a", "targets", 0)`` as ``models.a.targets[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def parse(text: str, file: str) -> Document:
    """Parse one document; raises `YamlError` for anything outside the subset, duplicate keys included."""
    builder = _Builder(file)
    try:
        value = builder.document(iter(yaml.parse(text, Loader=_LOADER)))
    except yaml.MarkedYAMLError as error:
        builder.problems.append(_syntax_problem(error, text, file))
        value = None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        builder.problems.append(Problem(file, line, column, "", "a character that YAML does not allow"))
        value = None
    if builder.problems:
        raise YamlError(builder.problems)
    return Document(file, value, builder.keys, builder.values)


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    lines = text.splitlines()
    if 0 < line <= len(lines) and "\t" in lines[line - 1][: max(column, 1)]:
        return Problem(file, line, lines[line - 1].index("\t") + 1, "", "a tab; YAML is indented with spaces")
    detail = ", ".join(part for part in (error.context, error.problem) if part)
    return Problem(file, line, column, "", f"not readable as YAML: {detail}")


class _Builder:
    """Turns the parser's events into values; one pass, without the node graph that would carry the positions."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        self.keys: dict[Path, Position] = {}
        self.values: dict[Path, Position] = {}
        self._file = file

    def document(self, events: Iterator[Any]) -> Any:
        value: Any = None
        seen = False
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if seen:
                    self._add(event, (), "a second document; one file holds one")
                    break
                seen = True
                value = self._value(next(events), events, ())
        return value

    def _value(self, event: Any, events: Iterator[Any], path: Path) -> Any:
        self.values[path] = Position(event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.AliasEvent):
            self._add(event, path, f"'*{event.anchor}': aliases are not supported; write the value out")
            return None
        if event.anchor is not None:
            self._add(
                event, path, f"'&{event.anchor}': anchors are not supported; write the value out where it is used"
            )
        if event.tag is not None and event.tag != "!":
            self._add(event, path, f"'{event.tag}': tags are not supported")
        if len(path) > _MAX_DEPTH:
            raise YamlError([Problem(self._file, event.start_mark.line + 1, event.start_mark.column + 1, "",
                                     f"nested deeper than {_MAX_DEPTH} levels")])  # fmt: skip
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, path)
        return scalar(event.value) if not event.style else event.value

    def _mapping(self, events: Iterator[Any], path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._add(event, path, "a key has to be a word")
                key = f"<line {event.start_mark.line + 1}>"
                self._value(event, events, (*path, key))
            else:
                key = event.value
            here = (*path, key)
            if key == "<<":
                self._add(event, path, "'<<': merge keys are not supported; write the keys out")
            elif key in result:
                first = self.keys[here]
                self._add(event, here, f"'{key}' stands twice in this mapping; first in line {first.line}")
            else:
                self.keys[here] = Position(event.start_mark.line + 1, event.start_mark.column + 1)
            value = self._value(next(events), events, here)
            result.setdefault(key, value)
        return result

    def _sequence(self, events: Iterator[Any], path: Path) -> list[Any]:
        result: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            result.append(self._value(event, events, (*path, len(result))))
        return result

    def _add(self, event: Any, path: Path, message: str) -> None:
        mark = event.start_mark
        self.problems.append(Problem(self._file, mark.line + 1, mark.column + 1, dotted(path), message))


def scalar(text: str) -> Any:
    """What an unquoted word means: null, a boolean, a number, or the word itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text) if len(text) < 40 else text
    if _FLOAT.match(text):
        return float(text)
    return text
