"""How a simulated provider says no: in the words, and with the status and code, of its file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.spec import ErrorCaseSpec, ProviderSpec
from adapters.types import FailureKind

_QUOTED: Final = re.compile(r"'[^']*'")
_SHOWN_VALUE: Final = re.compile(r"value: \S+$")
_MOST: Final = re.compile(r"(?:(?:length|window|limit)\W+(?:is |of )?(?:only )?\(?|<= ?)([NM])\b")
_NUMBER: Final = re.compile(r"\b[NM]\b")
_TOO_LONG: Final = "Please reduce the length of the messages or completion."
_GENERAL_TYPE: Final = "invalid_request_error"


@dataclass(slots=True)
class RefusedError(Exception):
    """A request is refused; what is None is not said."""

    message: str
    status: int = 400
    type: str | None = _GENERAL_TYPE
    code: str | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the error object."""


class Refusals:
    """Makes the refusals of one provider."""

    def __init__(self, spec: ProviderSpec) -> None:
        self._unknown = spec.transport.unknown_body_fields
        self._cases = spec.errors.cases
        self._validation = self.case("validation")

    def case(self, *names: str) -> ErrorCaseSpec | None:
        """The first of the file's cases that carries one of *names*, the more wanted first."""
        return next((case for name in names for case in self._cases if case.case == name), None)

    def of_kind(self, kind: FailureKind) -> ErrorCaseSpec | None:
        """The first of the file's cases that means *kind*."""
        return next((case for case in self._cases if case.kind is kind), None)

    def invalid(
        self, message: str, param: str | None = None, *, status: int | None = None, code: str | None = None
    ) -> RefusedError:
        """A value, or a combination, that the provider does not take."""
        case = self._validation
        found = case.type[0] if case is not None and case.type else _GENERAL_TYPE
        general = case.status[0] if case is not None and case.status else 400
        if status is None and case is not None:
            message = _recognised(message, case)
        return RefusedError(message, status or general, found, code or (case.code if case is not None else None), param)

    def unknown_field(
        self, path: str, value: Any, *, status: int | None = None, message_like: str | None = None
    ) -> RefusedError:
        """A field the provider does not know, or does not want, at *path*."""
        words = message_like or self._unknown.message_like or "property 'X' is unsupported"
        words = _QUOTED.sub(lambda _: f"'{path}'", words, count=1)
        words = _SHOWN_VALUE.sub(lambda _: f"value: {json.dumps(value)[:80]}", words)
        refusal = self.invalid(words, path)
        refusal.status = status or self._unknown.status or refusal.status
        refusal.code = self._unknown.code or refusal.code
        return refusal

    def too_long(self, count: int, most: int) -> RefusedError:
        """The refusal of a request of *count* tokens by a model whose context holds *most*."""
        case = self.case("context_overflow") or self.of_kind(FailureKind.CONTEXT_LENGTH)
        general = self.invalid(_TOO_LONG, "messages")
        if case is None:
            general.status, general.code = 400, "context_length_exceeded"
        refusal = self.by_case(case, general)
        # The wordings have N and M where the numbers stand, and do not agree on which is which.
        found = _MOST.search(refusal.message)
        letter = found[1] if found is not None else "N"
        refusal.message = _NUMBER.sub(lambda one: str(most if one[0] == letter else count), refusal.message)
        return refusal

    def by_case(self, case: ErrorCaseSpec | None, otherwise: RefusedError) -> RefusedError:
        """A refusal as *case* describes it; what it leaves open is as in *otherwise*."""
        if case is None:
            return otherwise
        words = _recognised(case.message_like or otherwise.message, case)
        known = case.type or case.code or case.message_like
        return RefusedError(
            words,
            case.status[0] if case.status else otherwise.status,
            case.type[0] if case.type else otherwise.type,
            case.code or (None if known else otherwise.code),
            case.param or otherwise.param,
            otherwise.headers,
            otherwise.extra,
        )


def _recognised(words: str, case: ErrorCaseSpec) -> str:
    """*words* with the phrase in them that *case* is known by."""
    if case.match and not any(phrase in words.lower() for phrase in case.match):
        return f"{words} ({case.match[0]})"
    return words
