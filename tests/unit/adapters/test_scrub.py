"""A provider's words without its secrets, and with everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.scrub import Scrubber


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect API key provided: hunter2-key.", "Incorrect API key provided: [key]."),
        ("key sk-proj-9aB8cD7eF6 is off", "key [key] is off"),
        ("key gsk_****abcd is off", "key [key] is off"),
        ("key sk-ab****9f is off", "key [key] is off"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: [key]"),
        ("limit for organization org_01hxyz99 reached", "limit for organization [account] reached"),
        ("model accounts/acme-corp/models/m", "model accounts/[account]/models/m"),
        ("see https://console.example/settings?org=7.", "see [address]"),
        ("Cannot connect to host gpu-7:8000 ssl:default", "Cannot connect to host [address] ssl:default"),
        ("upstream vllm.models.svc.cluster.local:8000 gone", "upstream [address] gone"),
        ("dial tcp 10.1.2.3:8000: refused", "dial tcp [address]: refused"),
        ("dial tcp [fe80::1]:8000: refused", "dial tcp [address]: refused"),
        ("gpu-box.internal said no", "[address] said no"),
        ("localhost:11434 said no", "[address] said no"),
        ("unable to load model: /root/.ollama/models/blobs/sha256-1", "unable to load model: [path]"),
        ("no file C:\\models\\m.gguf", "no file [path]"),
    ],
)
def test_what_is_ours_is_blotted_out(text: str, shown: str) -> None:
    assert Scrubber(("hunter2-key",))(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 32768 tokens. You requested 33077 (1077 in the messages).",
        "'max_tokens' : must be at most 8192; limit:4096",
        "The model `llama3.2:3b` does not exist, try openai/gpt-oss-120b or accounts/fireworks/models/m",
        "Invalid schema for response_format: missing additionalProperties at /properties/a",
        "messages.0.content: Field required (user_message, key_length_exceeded, org-chart)",
        "POST /v1/chat/completions took 1.5 s",
    ],
)
def test_what_helps_is_left_as_it_is(text: str) -> None:
    assert Scrubber()(text) == text


def test_of_two_secrets_that_begin_alike_nothing_is_left() -> None:
    assert Scrubber(("abcd", "abcd-efgh"))("it is abcd-efgh") == "it is [key]"


def test_a_secret_of_few_letters_does_not_eat_the_text() -> None:
    assert Scrubber(("k",))("okay, thanks") == "okay, thanks"


@given(st.text(max_size=200), st.text(alphabet="abcXYZ019-_", min_size=6, max_size=20))
def test_no_text_shows_a_secret(text: str, secret: str) -> None:
    assert secret not in Scrubber((secret,))(text + secret + text).replace("[key]", "").replace("[address]", "")
