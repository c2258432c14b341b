"""Reads YAML as PyYAML's users write it, anchors and merge keys included, and keeps the line of everything.

Our own configuration is a stricter subset (`adapters/located_yaml.py`); files that come from elsewhere are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]

_MOST_NODES = 100_000


class UnreadableYamlError(Exception):
    """The text is no YAML, or none that could be a configuration; the message says where."""


@dataclass(frozen=True, slots=True)
class Located:
    """A file's content, and in which line each part of it begins."""

    value: Any
    lines: Mapping[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int:
        """The line of *path*, or of what stands around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read(text: str) -> Located:
    """*text* as plain values; raises `UnreadableYamlError`."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        reading = _Reading(loader)
        value = None if node is None else reading.value(node, ())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark is not None else ""
        # The library's own text quotes the line, which may hold a secret.
        raise UnreadableYamlError(f"{place}{getattr(error, 'problem', None) or 'not readable as YAML'}") from None
    except RecursionError:
        raise UnreadableYamlError("nested too deep") from None
    finally:
        loader.dispose()
    return Located(value, reading.lines)


class _Reading:
    def __init__(self, loader: yaml.SafeLoader) -> None:
        self.lines: dict[Path, int] = {}
        self._loader = loader
        self._nodes = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise UnreadableYamlError("aliases that make more of the file than a configuration could hold")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            self._loader.flatten_mapping(node)
            result: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                self.lines[*path, key] = key_node.start_mark.line + 1
                result[key] = self.value(value_node, (*path, key))
            return result
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._loader.construct_object(node)
