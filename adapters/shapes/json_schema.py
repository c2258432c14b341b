"""JSON schemas of clients: compiled without ever reaching out, and asked what is wrong with a value."""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from adapters.patches import invalid

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_MOST_STEPS: Final = 20_000
"""Patterns come from clients: one that would try every way to match gives up here instead."""
_MOST_PROBLEMS: Final = 5
_MOST_CHARACTERS: Final = 200


class Schema:
    """A compiled JSON schema."""

    __slots__ = ("_validator",)

    def __init__(self, schema: Any, param: str) -> None:
        """BAD_REQUEST that names *param* where *schema* is none."""
        if not isinstance(schema, dict | bool):
            raise invalid(param, f"'{param}' has to be a JSON schema, which is an object.")
        try:
            # References to other documents are not followed: a client could make us ask servers of its choosing.
            self._validator = _compiler()(schema)
        except (ValueError, RecursionError) as error:
            reason = str(error).partition("\n")[0][:_MOST_CHARACTERS]
            raise invalid(param, f"'{param}' is not a valid JSON schema: {reason}") from None

    def problems(self, value: Any) -> list[str]:
        """What does not conform, in words for people and models; the first few."""
        try:
            found = list(itertools.islice(self._validator.iter_errors(value), _MOST_PROBLEMS))
        except (ValueError, RecursionError):
            return ["it cannot be checked"]
        return [_told(error) for error in found]


@cache
def _compiler() -> Any:
    # Loaded with the first schema that is to be checked, in 4 ms: it takes 3.5 MB, and most targets need no such check.
    import jsonschema_rs

    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MOST_STEPS)
    return partial(jsonschema_rs.validator_for, offline=True, pattern_options=options)


def _told(error: ValidationError) -> str:
    message = error.message if len(error.message) <= _MOST_CHARACTERS else error.message[:_MOST_CHARACTERS] + "…"
    place = "/".join(map(str, error.instance_path))
    return f"{place}: {message}" if place else message
