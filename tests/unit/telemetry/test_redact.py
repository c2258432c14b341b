"""Secrets, control bytes and overlong strings don't get into what is written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.telemetry.redact import clean_event, client_string, mask, register_secret


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key gw-0123456789abcdefABCDEF_-0123456789 refused", "key gw-*** refused"),
        ("Incorrect API key provided: sk-proj-abcdefgh12345678.", "Incorrect API key provided: sk-***."),
        ("gsk_abcdefghijkl", "gsk_***"),
        ("csk-abcdefghijkl", "csk-***"),
        ("fw_abcdefghijkl", "fw_***"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("{'authorization': 'Bearer abc'}", "{'authorization': 'Bearer ***'}"),
        ("Basic dXNlcjpwYXNz", "Basic ***"),
        ("postgresql+asyncpg://gateway:hunter22@db/gateway", "postgresql+asyncpg://***@db/gateway"),
        ("https://host/v1?api_key=abcdef&x=1", "https://host/v1?api_key=***&x=1"),
        ('{"api_key": "whatever-it-is"}', '{"api_key": "***"}'),
        ("x-api-key: whatever", "x-api-key: ***"),
    ],
)
def test_what_is_shaped_like_a_secret_is_masked(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096",
        "prompt_tokens=12",
        "the task-force met at sk-8",
        "model groq/openai/gpt-oss-120b at https://api.example/openai/v1",
        "127.0.0.1:8080",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert mask(text) == text


def test_a_registered_secret_is_masked_plain_and_in_a_url() -> None:
    register_secret("correct/horse+battery")

    assert mask("a correct/horse+battery b") == "a *** b"
    assert mask("?x=correct%2Fhorse%2Bbattery&y") == "?x=***&y"


def test_the_longer_of_two_registered_secrets_is_masked_whole() -> None:
    register_secret("abcdefgh-1")
    register_secret("abcdefgh-1-and-more")

    assert mask("abcdefgh-1-and-more") == "***"


@given(st.text())
def test_a_client_string_holds_no_control_character_and_stays_within_its_limit(text: str) -> None:
    safe = client_string(text)

    assert len(safe.encode()) <= 256
    assert not any(ord(char) < 32 or 0x7F <= ord(char) <= 0x9F or char in "\u2028\u2029\u202e" for char in safe)


def test_a_key_across_the_cut_is_masked_before_cutting() -> None:
    assert "gw-aaaa" not in client_string("x" * 250 + " gw-" + "a" * 32)


def test_events_are_cleaned_at_every_depth() -> None:
    event = {
        "event": "refused",
        "headers": {"x": ["Bearer abcdef", {"deep": "gsk_abcdefghijkl"}]},
        "raw": b"line\r\nforged sk-abcdefghijkl",
        "error": ValueError("key sk-abcdefghijkl"),
        "status": 401,
        "ok": None,
    }

    assert clean_event(None, "info", event) == {
        "event": "refused",
        "headers": {"x": ["Bearer ***", {"deep": "gsk_***"}]},
        "raw": "line\\x0d\\x0aforged sk-***",
        "error": "key sk-***",
        "status": 401,
        "ok": None,
    }


def test_a_traceback_keeps_its_lines() -> None:
    cleaned = clean_event(None, "error", {"exception": "Traceback\n  File x\nValueError: sk-abcdefghijkl\x1b[31m"})

    assert cleaned["exception"] == "Traceback\n  File x\nValueError: sk-***\\x1b[31m"
