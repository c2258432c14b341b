"""What `gateway serve` prints to try it with."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
from pathlib import Path

import pytest

from gateway.cli.readiness import Health
from gateway.cli.serve import curl_line, key_to_paste, print_ready
from gateway.settings import settings_from_environment
from gateway.storage.first_key import FirstKey


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


def test_a_key_that_is_not_shown_is_taken_out_of_its_file_by_the_shell(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder"'
    folder.mkdir()
    (folder / "gateway.key").write_text("gw-1\n")
    key = key_to_paste(FirstKey("gw-1", folder / "gateway.key"), show=False)
    line = curl_line("http://127.0.0.1:8080", "local", key)

    words = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True).stdout

    assert "gw-1" not in line
    assert "Authorization: Bearer gw-1" in words.splitlines()


@pytest.mark.parametrize(
    ("is_new", "terminal", "asked", "shown"),
    [
        (True, True, False, True),
        (False, True, False, False),
        (True, False, False, False),
        (False, False, True, True),
    ],
)
def test_a_key_is_shown_once_on_a_terminal_or_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, is_new: bool, terminal: bool, asked: bool, shown: bool
) -> None:
    monkeypatch.setattr("sys.stdout", _Output(terminal))

    assert ("gw-1" in key_to_paste(FirstKey("gw-1", Path("gateway.key"), is_new), show=asked)) is shown


class _Output(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("health", "first", "model"),
    [
        (Health(True, {}), "Ready.", "local"),
        (Health(True, {"engine local": "it is failed"}), "Ready, but for engine local: it is failed", None),
        (Health(False, {"database": "no answer"}), "Not ready: database: no answer", "local"),
        (Health(False, {"engine local": "failed", "groq": "?"}), "Not ready: engine local: failed; groq: ?", "local"),
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
