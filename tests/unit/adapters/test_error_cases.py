"""Every case of every provider file, told in the provider's own envelopes, is known for what the file says it means."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from adapters.failures import from_response
from adapters.registry import load_spec, preset_types, provider_types
from adapters.simulator.envelope import error_body
from adapters.simulator.refusal import RefusedError
from adapters.spec import ErrorCaseSpec
from adapters.types import FailureKind
from adapters.vocabulary import Envelope

WITH_TYPE = frozenset(Envelope) - {Envelope.DETAIL, Envelope.STRING}
WITH_CODE = frozenset({Envelope.OPENAI, Envelope.NESTED_OBJECT, Envelope.FLAT})
"""Envelopes that carry a word for the type, and one for the code."""


def cases() -> Iterator[tuple[str, ErrorCaseSpec, int, Envelope]]:
    for name in (*provider_types(), *preset_types()):
        errors = load_spec(name).errors
        for case in errors.cases:
            for envelope in (errors.envelope, *errors.also):
                carried = (not case.type or envelope in WITH_TYPE) and (not case.code or envelope in WITH_CODE)
                if case.kind is not None and carried:
                    yield from ((name, case, status, envelope) for status in case.status if 400 <= status < 600)


def said(case: ErrorCaseSpec) -> str:
    if case.message_like is not None and (not case.match or any(p in case.message_like.lower() for p in case.match)):
        return case.message_like
    return case.match[0] if case.match else "It did not work out."


@pytest.mark.parametrize(
    ("name", "case", "status", "envelope"),
    [pytest.param(*found, id=f"{found[0]}-{found[1].case}-{found[2]}-{found[3]}") for found in cases()],
)
def test_a_case_is_known_for_what_it_means(name: str, case: ErrorCaseSpec, status: int, envelope: Envelope) -> None:
    told = RefusedError(said(case), status, case.type[0] if case.type else None, case.code, case.param)
    body = json.dumps(error_body(envelope, told)).encode()

    failure = from_response(name, status, {}, body, str, load_spec(name).errors.cases)

    expected = case.kind
    # A refused parameter that is named in the words may be told of more exactly.
    assert failure.kind is expected or (expected, failure.kind) == (
        FailureKind.BAD_REQUEST,
        FailureKind.UNSUPPORTED_PARAMETER,
    )
