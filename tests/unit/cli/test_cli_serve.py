"""What `gateway serve` prints to try it with."""

from __future__ import annotations

import json
import shlex

import pytest

from gateway.cli.readiness import Health
from gateway.cli.serve import curl_line, print_ready
from gateway.settings import settings_from_environment


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


@pytest.mark.parametrize(
    ("health", "first", "model"),
    [
        (Health(True, {}), "Ready.", "local"),
        (Health(True, {"engine local": "it is failed"}), "Ready, but for engine local: it is failed", None),
        (Health(False, {"database": "no answer"}), "Not ready: database: no answer", "local"),
    ],
)
def test_the_call_to_paste_is_for_a_model_that_answers(
    capsys: pytest.CaptureFixture[str], health: Health, first: str, model: str | None
) -> None:
    settings = settings_from_environment({"GROQ_API_KEY": "gsk_" + "a" * 40})

    print_ready(settings, "http://127.0.0.1:8080", "gw-1", health)

    printed = capsys.readouterr().out.replace("\n", " ")
    assert first in printed
    asked = json.loads(printed[printed.index(" -d '") + 5 : printed.rindex("'")])["model"]
    assert asked == model if model else asked not in ("local", "smollm2-135m-instruct")
