"""What a key may use, and what a secret may look like."""

from __future__ import annotations

import re

import pytest

from gateway.storage.errors import InvalidKeyError
from gateway.storage.virtual_key import ANONYMOUS, VirtualKey, check_secret, make_secret, shown_prefix


def _key(*patterns: str) -> VirtualKey:
    return VirtualKey(id="key_1", name="test", prefix="gw-test", models=patterns)


def test_a_key_without_patterns_may_use_everything() -> None:
    assert VirtualKey(id="key_1", name="test", prefix="gw-test").allows("any/model")
    assert ANONYMOUS.allows("any/model")


@pytest.mark.parametrize(
    ("pattern", "model", "allowed"),
    [
        ("gpt-oss-120b", "gpt-oss-120b", True),
        ("gpt-oss-120b", "gpt-oss-120b-x", False),
        ("gpt-*", "gpt-oss-120b", True),
        ("groq/*", "groq/openai/gpt", True),
        ("llama-?b", "llama-8b", True),
        ("llama-?b", "llama-70b", False),
        ("GPT-*", "gpt-oss-120b", False),
        ("a.c", "abc", False),
    ],
)
def test_patterns_fit_whole_names_and_know_case(pattern: str, model: str, allowed: bool) -> None:
    key = _key("other", pattern)

    assert key.allows(model) is allowed
    assert key.allows(model) is allowed  # from memory this time


def test_an_empty_list_allows_nothing() -> None:
    assert not _key().allows("m")


def test_what_clients_ask_for_is_not_remembered_without_bound() -> None:
    key = _key("m-*")

    for number in range(5000):
        assert key.allows(f"m-{number}")

    assert len(key._allowed) <= 1024


def test_new_secrets_have_the_prefix_and_32_url_safe_characters() -> None:
    secrets = {make_secret() for _ in range(100)}

    assert len(secrets) == 100
    for secret in secrets:
        assert re.fullmatch(r"gw-[A-Za-z0-9_-]{32}", secret)
        check_secret(secret)


@pytest.mark.parametrize("secret", ["k" * 16, "k" * 256, "sk-!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"])
def test_any_printable_secret_can_be_imported(secret: str) -> None:
    check_secret(secret)


@pytest.mark.parametrize(
    "secret",
    ["", "k" * 15, "k" * 257, "with a space inside", "tab\tinside-the-key", "schlüssel-mit-umlaut", "k" * 16 + "\n"],
)
def test_other_secrets_are_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(InvalidKeyError) as caught:
        check_secret(secret)

    assert not secret or secret not in str(caught.value)


def test_of_a_short_secret_less_is_shown() -> None:
    assert shown_prefix("gw-0123456789abcdef0123456789abcdef") == "gw-01234"
    assert shown_prefix("0123456789abcdef") == "0123"
