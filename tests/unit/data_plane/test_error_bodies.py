"""Error bodies and headers, for every error there is."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec
import pytest

import gateway
from gateway.data_plane.errors import HeaderValueError, error_body, error_headers, render_headers, retry_after
from gateway.errors import GatewayError, OverloadedError, RateLimitError, UpstreamError
from gateway.request_id import new_request_id, request_id_of

TYPES = {
    "invalid_request_error",
    "authentication_error",
    "insufficient_quota",
    "permission_error",
    "rate_limit_error",
    "server_error",
    "timeout_error",
}


def _all_errors() -> list[type[GatewayError]]:
    for module in pkgutil.walk_packages(gateway.__path__, "gateway."):
        if ".cli." not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[GatewayError]] = [GatewayError]
    for kind in found:
        found += kind.__subclasses__()
    return found


@pytest.mark.parametrize("kind", _all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_a_type_and_a_code_of_its_own_words(kind: type[GatewayError]) -> None:
    assert 400 <= kind.status < 600
    assert kind.type in TYPES
    assert kind.code
    assert kind.code == kind.code.lower()
    assert " " not in kind.code
    assert kind.__doc__
    assert kind.__name__.endswith("Error")


def test_a_body_has_the_members_openai_clients_read() -> None:
    error = GatewayError('a "quoted" message\n', param="x")
    assert msgspec.json.decode(error_body(error, "req_1")) == {
        "error": {
            "message": 'a "quoted" message\n',
            "type": "server_error",
            "param": "x",
            "code": "internal_error",
            "request_id": "req_1",
        }
    }


def test_an_upstream_at_fault_is_named() -> None:
    error = msgspec.json.decode(error_body(UpstreamError("failed"), "req_1", "groq", 503))["error"]
    assert (error["provider"], error["upstream_status"]) == ("groq", 503)


def test_ids_stand_under_both_names() -> None:
    block = error_headers(GatewayError("x"), "req_1")
    assert b"x-request-id: req_1\r\n" in block
    assert b"\r\nrequest-id: req_1\r\n" in block


@pytest.mark.parametrize(
    ("seconds", "whole", "milliseconds"), [(0.0001, 1, 1), (0.2, 1, 200), (2, 2, 2000), (2.001, 3, 2001)]
)
def test_when_to_come_back_is_never_told_too_early(seconds: float, whole: int, milliseconds: int) -> None:
    block = error_headers(RateLimitError("x"), "req_1", retry_after_seconds=seconds)
    assert b"retry-after: %d\r\nretry-after-ms: %d\r\n" % (whole, milliseconds) in block


def test_clients_are_told_not_to_retry_what_cannot_succeed() -> None:
    assert b"x-should-retry: false" in error_headers(UpstreamError("x"), "req_1", should_retry=False)
    assert b"x-should-retry" not in error_headers(OverloadedError("x"), "req_1")


def test_the_headers_of_an_error_are_sent() -> None:
    assert b"www-authenticate: Bearer\r\n" in error_headers(
        GatewayError("x", headers={"WWW-Authenticate": "Bearer"}), "r"
    )


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\x00", "\x7f"])
def test_a_control_character_cannot_end_a_header(value: str) -> None:
    with pytest.raises(HeaderValueError) as caught:
        render_headers([("x", value)])
    assert value not in str(caught.value)


@pytest.mark.parametrize("name", ["", "X", "a b", "a:", "a\n"])
def test_a_header_name_is_a_lower_case_token(name: str) -> None:
    with pytest.raises(HeaderValueError):
        render_headers([(name, "x")])


def test_text_outside_latin_1_does_not_break_a_header() -> None:
    assert render_headers([("x", "é€")]) == b"x: \xe9?\r\n"


@pytest.mark.parametrize("value", [b"abc", b"a" * 128, b"A-1_2.3:4/5+6=@"])
def test_a_harmless_request_id_is_kept(value: bytes) -> None:
    assert request_id_of([(b"x-request-id", value)]) == value.decode()


@pytest.mark.parametrize("value", [b"", b"a" * 129, b"a b", b"a\xff", b'"', b"a\n", b"<"])
def test_another_one_is_replaced(value: bytes) -> None:
    assert request_id_of([(b"x-request-id", value)]).startswith("req_")


def test_request_ids_differ() -> None:
    assert len({new_request_id() for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("seconds", "told", "milliseconds"),
    [
        ((1234.567 + 77) - 1234.567, "77", "77000"),
        (77.0000000001, "77", "77000"),
        (77.0001, "78", "77001"),
        (0.0, "1", "1"),
        (0.25, "1", "250"),
    ],
)
def test_when_to_come_back_is_rounded_up_but_not_for_what_floats_lose(
    seconds: float, told: str, milliseconds: str
) -> None:
    assert retry_after(seconds) == [("retry-after", told), ("retry-after-ms", milliseconds)]
