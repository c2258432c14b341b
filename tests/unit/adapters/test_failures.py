"""Refusals of every provider, read into kinds of failure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.errors import ProviderError
from adapters.failures import ErrorFields, from_fields, from_response
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


# Statuses


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.BAD_REQUEST), (401, Kind.AUTH), (402, Kind.PAYMENT), (403, Kind.AUTH), (404, Kind.NOT_FOUND),
        (405, Kind.BAD_REQUEST), (408, Kind.TIMEOUT_STATUS), (409, Kind.SERVER_ERROR), (410, Kind.NOT_FOUND),
        (412, Kind.PAYMENT), (413, Kind.BAD_REQUEST), (499, Kind.SERVER_ERROR),
        (422, Kind.BAD_REQUEST), (424, Kind.SERVER_ERROR), (425, Kind.SERVER_ERROR), (429, Kind.RATE_LIMITED),
        (498, Kind.OVERLOADED), (500, Kind.SERVER_ERROR), (501, Kind.UNSUPPORTED_PARAMETER), (502, Kind.SERVER_ERROR),
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
def test_a_client_never_sees_a_status_that_is_about_the_gateways_own_account(status: int) -> None:
    assert to_error(refused(status, {"error": {"message": "no"}})).status in (400, 413, 429, 502, 503, 504)


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
        # A case that only says "server error" knows less than the words do.
        ("llama_cpp_server", 500, {"message": "model failed to load", "type": "server_error"}, Kind.NOT_LOADED),
        ("llama_cpp_server", 500, {"message": "input is too large to process"}, Kind.CONTEXT_LENGTH),
        ("groq", 498, {"message": "m"}, Kind.OVERLOADED),
        ("fireworks", 412, {"message": "m"}, Kind.PAYMENT),
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


def test_a_secret_is_blotted_out_before_the_message_is_cut() -> None:
    body = json.dumps({"error": {"message": "x" * 596 + "sk-12345678"}}).encode()
    failure = from_response("acme", 400, {}, body, lambda text: text.replace("sk-12345678", "[key]"))

    assert failure.message == "x" * 596 + "[key"


def test_what_the_model_wrote_is_kept_apart_from_what_is_told() -> None:
    error = {"message": "did not match", "code": "tool_use_failed", "failed_generation": "<function=f>"}
    failure = refused(400, {"error": error}, provider="groq")

    assert (failure.kind, failure.failed_generation) == (Kind.INVALID_OUTPUT, "<function=f>")
    assert "<function" not in to_error(failure).message


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "3"}, "try again in 9s", 3.0),
        ({}, "try again in 9s", 7.0),
        ({}, "no", 7.0),
    ],
)
def test_a_header_says_when_to_come_back_before_the_limits_do(
    headers: dict[str, str], message: str, seconds: float
) -> None:
    body = json.dumps({"error": {"message": message}}).encode()

    assert from_response("acme", 429, headers, body, same, retry_after_seconds=7.0).retry_after_seconds == seconds


def test_without_any_header_the_words_say_when_to_come_back() -> None:
    assert refused(429, {"error": {"message": "Please try again in 9.5s."}}).retry_after_seconds == 9.5
    assert refused(503, {"error": "is loading", "estimated_time": 20.0}).retry_after_seconds == 20.0
    assert refused(400, {"error": {"message": "Please try again in 9.5s."}}).retry_after_seconds is None
