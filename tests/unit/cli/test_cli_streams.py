"""Commands whose output goes nowhere, into a full disk, to a reader that leaves, or to one without UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = ("--help", "models list --all", "config schema", "providers show groq", "init -o -", "check -c c.yaml")

every_command = pytest.mark.parametrize("line", COMMANDS)


@pytest.fixture(autouse=True)
def config(home: Path) -> None:
    (home / "c.yaml").write_text(
        'providers: {p: {type: openai_compatible, base_url: "http://127.0.0.1:9/v1"}}\n'
        'models: {"modèle": {targets: [{provider: p, model: x}]}}\n',
        encoding="utf-8",
    )


def shell(home: Path, line: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash in which ``gateway`` is the command."""
    command = f'gateway() {{ {sys.executable} -P -m gateway "$@"; }}; {line}'
    # Unbuffered, as images of containers often ask for, no stream holds back what could not be written.
    kept = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "", **environ}
    return subprocess.run(["bash", "-c", command], cwd=home, env=kept, capture_output=True, check=False, timeout=60)


@every_command
def test_a_reader_that_leaves_is_no_error_to_speak_of(home: Path, line: str) -> None:
    done = shell(home, f"gateway {line} | head -1")

    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


@every_command
def test_a_closed_output_goes_nowhere(home: Path, line: str) -> None:
    done = shell(home, f"gateway {line} >&-")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
unbuffered = pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])


@needs_full
@unbuffered
@every_command
def test_a_full_disk_is_told_once(home: Path, line: str, unbuffered: str) -> None:
    done = shell(home, f"gateway {line} > /dev/full", PYTHONUNBUFFERED=unbuffered)

    assert done.returncode == 1
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"


@needs_full
@unbuffered
@pytest.mark.parametrize(
    ("line", "code"), [("models show nowhere", 2), ("check -c no.yaml", 3), ("check -c bad.yaml", 3)]
)
def test_errors_that_cannot_be_written_keep_their_exit_code(home: Path, line: str, code: int, unbuffered: str) -> None:
    (home / "bad.yaml").write_text("nonsense: 1\n")

    done = shell(home, f"gateway {line} 2> /dev/full", PYTHONUNBUFFERED=unbuffered)

    assert done.returncode == code


@pytest.mark.parametrize("line", ["check -c c.yaml", "models -c c.yaml", "explain modèle -c c.yaml", "providers list"])
def test_what_the_terminal_has_no_letters_for_is_shown_by_numbers(home: Path, line: str) -> None:
    done = shell(home, f"gateway {line}", PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"mod\\xe8le" in done.stdout or line == "providers list"


@pytest.mark.parametrize("line", ["check -c c.yaml --json", "config show -c c.yaml --json"])
def test_json_is_json_whatever_the_locale(home: Path, line: str) -> None:
    plain = shell(home, f"gateway {line}", PYTHONIOENCODING="ascii")
    wide = shell(home, f"gateway {line}", PYTHONIOENCODING="utf-8")

    assert json.loads(plain.stdout) == json.loads(wide.stdout)
    assert "modèle" in json.loads(plain.stdout)["models"]
