"""Values from elsewhere: `os.environ/X` becomes `${X}`, and a secret that stands in the file never leaves it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.importing.located import Path
from gateway.importing.report import Report

_FROM_ENVIRONMENT = "os.environ/"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SECRET_WORDS = ("key", "secret", "token", "password", "credential", "auth", "cookie")


class Reference(str):
    """Text of ours that may hold ``${NAME}``; in every other text ``${`` is two characters."""

    __slots__ = ()


class References:
    """Turns values into what our configuration says in their place, and remembers the variables it needs then."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._names: dict[str, str] = {}
        """The variables that stand for secrets of the file, by the secret; it goes nowhere from here."""
        self._taken: set[str] = set()

    def reserve(self, names: Iterable[str]) -> None:
        """Let no secret of the file be called by one of *names*, which mean something else to it."""
        self._taken.update(names)

    def is_reference(self, value: Any) -> bool:
        """Whether LiteLLM takes *value* from a variable."""
        return bool(self._variable(value))

    def text(self, value: Any, purpose: str) -> str:
        """A value that is no secret: as it stands, or a reference to the variable it is taken from."""
        variable = self._variable(value)
        return self.variable(variable, purpose) if variable else str(value)

    def secret(self, value: Any, path: Path, wanted: str, purpose: str, about: tuple[str, str] | None = None) -> str:
        """A reference to the variable that holds a secret: the file's own, or one called *wanted* or nearly so."""
        variable = self._variable(value)
        if variable:
            return self.variable(variable, purpose)
        name = self._names.get(str(value))
        if name is None:
            name = self._free(wanted)
            self._names[str(value)] = name
            self._report.variables[name] = purpose
        self._report.approximated(path, f"a secret of the file, not copied; export it as {name}")
        return Reference(f"${{{name}}}")

    def variable(self, name: str, purpose: str) -> str:
        """A reference to the variable *name*."""
        self._report.variables.setdefault(name, purpose)
        return Reference(f"${{{name}}}")

    def _variable(self, value: Any) -> str:
        if isinstance(value, str) and value.startswith(_FROM_ENVIRONMENT):
            name = value.removeprefix(_FROM_ENVIRONMENT).strip()
            return name if _NAME.match(name) else ""
        return ""

    def _free(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._report.variables or name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        return name


def variables_in(value: Any) -> Iterator[str]:
    """The variables that *value* is taken from, at any depth."""
    if isinstance(value, str) and value.startswith(_FROM_ENVIRONMENT):
        yield value.removeprefix(_FROM_ENVIRONMENT).strip()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        yield from variables_in(part)


def variable_name(text: str) -> str:
    """*text* as the name of a variable: ``gpu-box.internal`` is ``GPU_BOX_INTERNAL``."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()
    return name if name and not name[0].isdigit() else f"P_{name}"


def looks_secret(name: str) -> bool:
    """Whether a value of that name may be a secret."""
    return any(word in name.lower() for word in _SECRET_WORDS)
