"""What `gateway serve` prints to try it with."""

from __future__ import annotations

import json
import shlex

import pytest

from gateway.cli.serve import curl_line


@pytest.mark.parametrize(("key", "open_mode"), [("gw-1", False), (None, False), (None, True)])
def test_the_printed_line_asks_for_a_short_and_cold_stream(key: str | None, open_mode: bool) -> None:
    words = shlex.split(curl_line("http://127.0.0.1:8080", "local", key, open_mode=open_mode))
    body = json.loads(words[words.index("-d") + 1])

    assert words[:3] == ["curl", "-N", "http://127.0.0.1:8080/v1/chat/completions"]
    assert body["messages"] == [{"role": "user", "content": "Say hello!"}]
    assert (body["model"], body["stream"], body["temperature"], body["max_tokens"]) == ("local", True, 0, 100)
    assert [word for word in words if word.startswith("Authorization")] == (
        [] if open_mode else [f"Authorization: Bearer {key or 'KEY'}"]
    )
