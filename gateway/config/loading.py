"""From a tree of plain values to settings, in one run that gathers everything that is wrong on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from pydantic import ValidationError

from adapters.located_yaml import Document, Path, Problem, dotted
from adapters.validation import problems_of
from gateway.config.crosscheck import Finding, check
from gateway.config.disabled import Kept, take_out_disabled
from gateway.config.environment import from_environment
from gateway.config.key_shapes import key_remarks
from gateway.config.problems import ConfigError
from gateway.config.schema import NOT_IN_FILE, Settings
from gateway.config.served import check_served
from gateway.config.unbuilt import take_out_unbuilt

NO_FILE = "environment"
"""Stands for the file's name where there is none."""


class Loading:
    """One run from a tree of plain values to settings, gathering what is wrong on the way."""

    notes: list[str]
    """Remarks that end up in the settings."""
    origins: dict[Path, str]
    """The variable or flag a value came from, by path; whatever is not here came from the file."""

    def __init__(self, document: Document, tree: dict[str, Any], unresolved: Mapping[Path, str]) -> None:
        self.notes = []
        self._document = document
        self._tree = tree
        self.origins = {}
        self._kept: Kept = {}
        self._unresolved = unresolved
        self._removed: set[Path] = set()
        self._problems = [document.problem(path, message) for path, message in unresolved.items()]

    def finish(self, environ: Mapping[str, str], flags: Mapping[str, object]) -> Settings:
        """Lay environment and flags over the file, check everything, and raise or return."""
        # `models:` with everything below it commented out is an empty section, not a wrong one.
        for section in [name for name, value in self._tree.items() if value is None]:
            del self._tree[section]
        tree, origins, problems = from_environment(environ)
        self._problems += problems
        self.origins |= origins
        _lay_over(self._tree, tree)
        for name, value in flags.items():
            if value is not None:
                path: Path = tuple(name.split("."))
                self.origins[path] = f"--{name.rpartition('.')[2].replace('_', '-')}"
                _lay_over(self._tree, _nested(path, value))
        providers, models = _names(self._tree, "providers"), _names(self._tree, "models")
        self._add(take_out_unbuilt(self._tree))
        self._add(take_out_disabled(self._tree, self.notes, self._kept))
        settings = self._validate()
        if settings is not None:
            self._add(check(settings, providers, models))
            served = check_served(settings, date.today())
            self._add(served.findings)
            settings = settings.model_copy(update={"notes": (*settings.notes, *served.notes, *key_remarks(settings))})
        if self._problems or settings is None:
            raise ConfigError(self._problems)
        return settings

    def _validate(self) -> Settings | None:
        """The settings, if need be without what is wrong, so that the other checks still see the rest."""
        for name in NOT_IN_FILE:
            if name in self._tree:
                self._add([((name,), True, f"'{name}' is not a known key here.")])
                del self._tree[name]
        source = "" if self._document.file == NO_FILE else self._document.file
        first = True
        while True:
            try:
                return Settings(**{**self._tree, "notes": tuple(self.notes), "source": source})
            except ValidationError as error:
                findings = problems_of(error, Settings)
            if first:
                self._add(findings)
            first = False
            # From the end, so that an entry that leaves a list does not move those still to be removed.
            removed = [
                self._take_out(path, of_key) for path, of_key, _ in sorted(findings, key=_place_in_file, reverse=True)
            ]
            if not any(removed):
                return None

    def _take_out(self, path: Path, of_key: bool) -> bool:
        """Remove what stands at *path*, if it is there. Unless only the key was wrong, no more is said of the place."""
        if not path:
            return False
        if not of_key:
            self._removed.add(self._original(path))
        parent: Any = self._tree
        for part in path[:-1]:
            try:
                parent = parent[part]
            except (KeyError, IndexError, TypeError):
                return False  # went with something around it
        if isinstance(parent, list) and isinstance(path[-1], int) and path[-1] < len(parent):
            self._kept.setdefault(path[:-1], list(range(len(parent)))).pop(path[-1])
            del parent[path[-1]]
            return True
        if isinstance(parent, dict) and path[-1] in parent:
            del parent[path[-1]]
            return True
        return False

    def _add(self, findings: Iterable[tuple[Path, bool, str]]) -> None:
        for path, of_key, message in findings:
            original = self._original(path)
            if not self._hidden(original):
                self._problems.append(self._place(original, of_key, message))

    def _hidden(self, path: Path) -> bool:
        """Whether a finding at *path* would only be a consequence of what is known to be wrong."""
        inside = any(path[: len(place)] == place for place in self._unresolved)
        return inside or any(_related(path, place) for place in self._removed)

    def _original(self, path: Path) -> Path:
        """*path* as it was before entries were taken out of lists."""
        original = list(path)
        for depth, part in enumerate(path):
            kept = self._kept.get(path[:depth])
            if kept is not None and isinstance(part, int) and part < len(kept):
                original[depth] = kept[part]
        return tuple(original)

    def _place(self, path: Path, of_key: bool, message: str) -> Problem:
        for length in range(len(path), 0, -1):
            if origin := self.origins.get(path[:length]):
                return Problem(origin, 0, 0, dotted(path), message)
        problem = self._document.problem(path, message, of_key=of_key)
        return problem if self._document.values else Problem(self._document.file, 0, 0, problem.path, message)


def _related(path: Path, other: Path) -> bool:
    """Whether one of the two contains the other."""
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def _place_in_file(finding: Finding) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (-1, part) for part in finding[0]]


def _lay_over(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Merge *over* into *base*. Environment variables have no case, so a key that differs in case alone is the same."""
    folded = {key.lower(): key for key in base}
    for key, value in over.items():
        here = key if key in base else folded.get(key, key)
        old = base.get(here)
        if isinstance(old, dict) and isinstance(value, Mapping):
            _lay_over(old, value)
        else:
            base[here] = value


def _names(tree: Mapping[str, Any], section: str) -> list[str]:
    found = tree.get(section)
    return [str(name) for name in found] if isinstance(found, dict) else []


def _nested(path: Path, value: object) -> dict[str, Any]:
    tree: Any = value
    for part in reversed(path):
        tree = {part: tree}
    return dict(tree)
