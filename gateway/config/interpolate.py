"""Puts values from outside into a file: `${VAR}`, `${VAR:-default}` and `${file:PATH}`, inside any scalar.

`$${` stands for a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters import located_yaml
from adapters.located_yaml import Document

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<body>[^}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MAX_FILE_BYTES = 64 * 1024
UNRESOLVED = "unresolved"
"""Stands for a value that could not be had, so that the key does not look absent too."""


def interpolate(document: Document, environ: Mapping[str, str], base: Path) -> tuple[Any, dict[located_yaml.Path, str]]:
    """The document's value with every reference replaced, and the references that could not be, by path.

    A relative path of ``${file:…}`` counts from *base*. What cannot be resolved becomes `UNRESOLVED`.
    """
    walk = _Walk(environ, base)
    return walk.value(document.value, ()), walk.failed


class _Walk:
    def __init__(self, environ: Mapping[str, str], base: Path) -> None:
        self.failed: dict[located_yaml.Path, str] = {}
        self._environ = environ
        self._base = base

    def value(self, value: Any, path: located_yaml.Path) -> Any:
        if isinstance(value, dict):
            return {key: self.value(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, (*path, index)) for index, inner in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            return self._text(value, path)
        return value

    def _text(self, text: str, path: located_yaml.Path) -> str:
        result = _REFERENCE.sub(lambda match: self._replace(match, path), text)
        return UNRESOLVED if path in self.failed else result

    def _replace(self, match: re.Match[str], path: located_yaml.Path) -> str:
        if match[0] == "$${":
            return "${"
        body = match["body"]
        if body is None:
            return self._fail(path, "'${' without '}'; write $${ for the characters themselves")
        if body.startswith("file:"):
            return self._file(body.removeprefix("file:"), path)
        name, separator, default = body.partition(":-")
        if not _NAME.match(name):
            return self._fail(path, f"'${{{body}}}' is no reference.  (${{VAR}}, ${{VAR:-default}}, ${{file:PATH}})")
        found = self._environ.get(name)
        if found or (found is not None and not separator):
            return found
        if separator:
            return default
        return self._fail(path, f"environment variable {name} is not set. {self._remedy(name, path)}")

    def _remedy(self, name: str, path: located_yaml.Path) -> str:
        if len(path) >= 3 and path[0] == "providers" and path[2] in ("api_key", "api_keys"):
            return f"Export it, or write ${{{name}:-}} to disable this provider."
        return f"Export it, or write ${{{name}:-default}}."

    def _file(self, name: str, path: located_yaml.Path) -> str:
        place = self._base / name
        try:
            with place.open("rb") as stream:
                data = stream.read(_MAX_FILE_BYTES + 1)
            if len(data) > _MAX_FILE_BYTES:
                return self._fail(path, f"{place} is larger than {_MAX_FILE_BYTES // 1024} KiB")
            return data.decode().rstrip("\r\n")
        except OSError as error:
            return self._fail(path, f"{place} cannot be read: {error.strerror or error}")
        except UnicodeDecodeError:
            return self._fail(path, f"{place} is no UTF-8 text")

    def _fail(self, path: located_yaml.Path, message: str) -> str:
        self.failed.setdefault(path, message)
        return ""
