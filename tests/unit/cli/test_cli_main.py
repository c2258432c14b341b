"""The command's entry: quick, lazy, and with the exit codes that are documented."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.__about__ import __version__
from gateway.cli.main import COMMANDS, main


def run(
    *arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    root = str(Path(__file__).resolve().parents[3])
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=60,
        env={**kept, "PYTHONPATH": root, **(environ or {})},
    )  # fmt: skip


def test_version_and_help_answer() -> None:
    version, help_ = run("--version"), run("--help")

    assert (version.returncode, version.stdout.strip()) == (0, f"gateway {__version__}")
    assert help_.returncode == 0
    assert all(f"\n  {name} " in help_.stdout and entry.help in help_.stdout for name, entry in COMMANDS.items())
    assert "\x1b" not in help_.stdout


def test_help_answers_at_once() -> None:
    best = min(_computed_seconds() for _ in range(3))

    assert best < 1.5, f"{best:.2f} s; 0.3 s is the aim"


def _computed_seconds() -> float:
    """How long a CPU works for the help; the clock on the wall would tell how busy the machine is."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_nothing_heavy_is_imported_for_the_help() -> None:
    code = (
        "import sys, gateway.cli.main as m\n"
        "try: m.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print({'pydantic', 'sqlalchemy', 'fastapi', 'uvicorn', 'httpx2', 'rich'} & set(sys.modules))"
    )
    root = str(Path(__file__).resolve().parents[3])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)

    assert done.stdout.splitlines()[-1] == "set()"


def test_no_arguments_show_the_help() -> None:
    done = run()

    assert "Commands:" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("chek",), "No such command 'chek'. Did you mean 'check'?"),
        (("check", "--lve"), "No such option"),
        (("check", "-c"), "requires an argument"),
        (("config", "shw"), "No such command 'shw'"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)

    assert done.returncode == 2
    assert message in done.stderr


def test_a_wrong_configuration_exits_with_3_and_the_report(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("server: {port: x}\nexpose_provider_models: true\n", encoding="utf-8")
    done = run("check", "-c", str(path))

    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr == (
        f"{path}:1:16  server.port\n  found 'x'; a whole number is expected\n1 error; nothing was started.\n"
    )


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_of_the_table_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])

    assert not ended.value.code
    assert f"gateway {name}" in capsys.readouterr().out
