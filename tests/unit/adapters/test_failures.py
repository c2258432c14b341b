"""Refusals of every provider, read into kinds of failure."""

from __future__ import annotations

import email.utils
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import ProviderError
from adapters.failures import (
    MAX_RETRY_AFTER_SECONDS,
    ErrorFields,
    error_fields,
    from_fields,
    from_response,
    parse_retry_after,
    read_error,
)
from adapters.registry import load_spec
from adapters.types import FailureKind as Kind
from gateway.errors import GatewayError
from gateway.pipeline.outcome import _ERRORS, to_error
from gateway.telemetry.names import OUTCOMES
from policies.retry import FINAL, LOUD, ONCE


def same(text: str) -> str:
    return text


def refused(
    status: int, body: Any, headers: dict[str, str] | None = None, provider: str | None = None
) -> ProviderError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    cases = load_spec(provider).errors.cases if provider else ()
    return from_response("acme", status, headers or {}, raw, same, cases)


# Tables


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_becomes_an_error_and_an_outcome(kind: Kind) -> None:
    assert kind in _ERRORS
    assert kind in OUTCOMES
    error = to_error(ProviderError(kind, "what happened"))
    assert isinstance(error, GatewayError)
    assert error.message == "what happened"
    assert 400 <= error.status < 600
    assert error.code


def test_the_classes_of_retrying_do_not_overlap() -> None:
    assert len(LOUD | FINAL | ONCE) == len(LOUD) + len(FINAL) + len(ONCE)


# Envelopes


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"error": {"message": "m", "type": "t", "code": "c", "param": "p"}}, ErrorFields("m", "t", "c", "p")),
        ({"error": {"message": "m", "code": None, "param": None}}, ErrorFields("m")),
        ({"error": "m"}, ErrorFields("m")),
        ({"error": "m", "error_type": "t"}, ErrorFields("m", "t")),
        ({"message": "m", "type": "t", "code": "c"}, ErrorFields("m", "t", "c")),
        (
            {"object": "error", "message": "m", "type": "BadRequestError", "code": 400},
            ErrorFields("m", "BadRequestError", status=400),
        ),
        ({"error": {"message": "m", "code": 503}}, ErrorFields("m", status=503)),
        ({"error": {"message": "m", "code": "503"}}, ErrorFields("m", status=503)),
        ({"error": {"message": "m", "code": 7}}, ErrorFields("m")),
        ({"error": {"message": "m", "code": True}}, ErrorFields("m")),
        ({"detail": "m"}, ErrorFields("m")),
        ({"detail": [{"loc": ["body"], "msg": "m"}]}, ErrorFields('[{"loc":["body"],"msg":"m"}]')),
        ({"msg": "m"}, ErrorFields("m")),
        ({"error": {"type": "overloaded_error"}}, ErrorFields("", "overloaded_error")),
        ("m", ErrorFields("m")),
        ({}, None),
        ({"error": {}}, None),
        ({"error": 5}, None),
        ({"error": None}, None),
        ([], None),
        (None, None),
    ],
)
def test_every_envelope_is_read(body: Any, fields: ErrorFields | None) -> None:
    assert read_error(json.dumps(body).encode()) == fields


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_no_error_body(body: bytes) -> None:
    assert read_error(body) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["²", "٣", "9" * 5000]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "type", "code", "param", "detail", "msg", "error_type", "error_code"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(JSON, st.none() | st.integers(300, 599))
@settings(max_examples=400, deadline=None)
def test_every_json_can_be_read_as_a_refusal(body: Any, status: int | None) -> None:
    fields = error_fields(body) or ErrorFields()
    failure = from_fields("acme", fields, status, same)
    assert failure.message
    assert len(failure.message) <= 700
    assert to_error(failure).status >= 400


# Statuses


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.BAD_REQUEST), (401, Kind.AUTH), (402, Kind.PAYMENT), (403, Kind.AUTH), (404, Kind.NOT_FOUND),
        (405, Kind.BAD_REQUEST), (408, Kind.TIMEOUT_STATUS), (409, Kind.SERVER_ERROR), (413, Kind.BAD_REQUEST),
        (422, Kind.BAD_REQUEST), (424, Kind.SERVER_ERROR), (425, Kind.SERVER_ERROR), (429, Kind.RATE_LIMITED),
        (498, Kind.OVERLOADED), (500, Kind.SERVER_ERROR), (501, Kind.SERVER_ERROR), (502, Kind.SERVER_ERROR),
        (503, Kind.OVERLOADED), (504, Kind.TIMEOUT_STATUS), (508, Kind.SERVER_ERROR), (524, Kind.TIMEOUT_STATUS),
        (529, Kind.OVERLOADED), (201, Kind.EMPTY), (202, Kind.EMPTY), (204, Kind.EMPTY),
        (301, Kind.REDIRECT), (307, Kind.REDIRECT), (304, Kind.REDIRECT),
    ],
)  # fmt: skip
@pytest.mark.parametrize("body", [{"error": {"message": "no"}}, b"", b"<html>no</html>"])
def test_every_status_has_a_kind(status: int, kind: Kind, body: Any) -> None:
    failure = refused(status, body)
    assert (failure.kind, failure.status) == (kind, status)
    assert "html" not in failure.message


@pytest.mark.parametrize("status", range(400, 600))
def test_no_refusal_is_left_without_an_error(status: int) -> None:
    error = to_error(refused(status, {"error": {"message": "no"}}))
    assert (error.status < 500) == (status < 500 and error.status in (400, 413, 429))


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"code": "context_length_exceeded"}, Kind.CONTEXT_LENGTH),
        (400, {"type": "exceed_context_size_error"}, Kind.CONTEXT_LENGTH),
        (400, {"message": "This model's maximum context length is 8192 tokens."}, Kind.CONTEXT_LENGTH),
        (400, {"message": "Please reduce the length of the messages or completion."}, Kind.CONTEXT_LENGTH),
        (413, {"message": "the prompt exceeds the available context size"}, Kind.CONTEXT_LENGTH),
        (413, {"code": "rate_limit_exceeded", "type": "tokens"}, Kind.RATE_LIMITED),
        (422, {"message": "`inputs` tokens + `max_new_tokens` must be <= 4096"}, Kind.CONTEXT_LENGTH),
        (500, {"message": "maximum context length"}, Kind.SERVER_ERROR),
        (400, {"code": "content_filter"}, Kind.CONTENT_FILTER),
        (400, {"code": "content_policy_violation"}, Kind.CONTENT_FILTER),
        (400, {"message": "flagged by our safety system"}, Kind.CONTENT_FILTER),
        (400, {"message": "the temperature is too high"}, Kind.BAD_REQUEST),
    ],
)
def test_codes_and_wordings_say_more_than_a_status(status: int, error: dict[str, str], kind: Kind) -> None:
    assert refused(status, {"error": error}).kind is kind


@pytest.mark.parametrize(
    ("fields", "kind", "status"),
    [
        (ErrorFields("m", code="rate_limit_exceeded"), Kind.RATE_LIMITED, 429),
        (ErrorFields("m", type="Rate_Limit_Error"), Kind.RATE_LIMITED, 429),
        (ErrorFields("m", code="insufficient_quota"), Kind.PAYMENT, 402),
        (ErrorFields("m", type="overloaded_error"), Kind.OVERLOADED, 503),
        (ErrorFields("m", type="BadRequestError"), Kind.BAD_REQUEST, 400),
        (ErrorFields("m", type="timeout"), Kind.TIMEOUT_STATUS, 504),
        (ErrorFields("m", status=429), Kind.RATE_LIMITED, 429),
        (ErrorFields("m", code="context_length_exceeded"), Kind.CONTEXT_LENGTH, None),
        (ErrorFields("m"), Kind.SERVER_ERROR, None),
        (ErrorFields(), Kind.SERVER_ERROR, None),
    ],
)
def test_an_error_without_a_status_is_known_by_its_code(fields: ErrorFields, kind: Kind, status: int | None) -> None:
    failure = from_fields("acme", fields, None, same)
    assert (failure.kind, failure.status) == (kind, status)


@pytest.mark.parametrize(
    ("provider", "status", "error", "kind"),
    [
        ("openai_compatible", 429, {"code": "insufficient_quota"}, Kind.PAYMENT),
        ("openai_compatible", 429, {"code": "rate_limit_exceeded"}, Kind.RATE_LIMITED),
        (
            "openai_compatible",
            400,
            {"message": "This model's maximum context length is 4097 tokens"},
            Kind.CONTEXT_LENGTH,
        ),
    ],
)
def test_the_providers_own_cases_come_first(provider: str, status: int, error: dict[str, str], kind: Kind) -> None:
    assert refused(status, {"error": error}, provider=provider).kind is kind


def test_a_message_is_kept_short_and_its_secrets_blotted_out() -> None:
    body = json.dumps({"error": {"message": "sk-1 " + "x" * 5000, "code": "sk-1", "param": "sk-1"}}).encode()
    failure = from_response("acme", 400, {}, body, lambda text: text.replace("sk-1", "[key]"))
    assert failure.message.startswith("[key] xxx")
    assert len(failure.message) == 600
    assert (failure.code, failure.param) == ("[key]", "[key]")
    assert "sk-1" not in failure.detail


@pytest.mark.parametrize("status", [401, 402, 403])
def test_words_about_our_account_stay_with_us(status: int) -> None:
    failure = refused(status, {"error": {"message": "account acme-17 of Jo Doe"}})
    assert "acme-17" not in failure.message
    assert "operator" in failure.message


# When to come back


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "99999"}, MAX_RETRY_AFTER_SECONDS),
        ({"retry-after-ms": "99999999"}, MAX_RETRY_AFTER_SECONDS),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 99 Foo 2026 25:61:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_RETRY_AFTER_SECONDS),
    ],
)
def test_the_time_to_come_back_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_a_date_to_come_back_is_counted_from_now() -> None:
    seconds = parse_retry_after({"retry-after": email.utils.formatdate(time.time() + 60, usegmt=True)})
    assert seconds is not None
    assert 50 < seconds <= 60


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_no_header_makes_it_fail(value: str) -> None:
    seconds = parse_retry_after({"retry-after": value, "retry-after-ms": value})
    assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER_SECONDS
