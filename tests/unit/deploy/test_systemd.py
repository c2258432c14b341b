"""The unit is one that systemd accepts, locks the gateway in, and gives it the time to stop."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from gateway.cli.console import ExitCode
from gateway.cli.main import COMMANDS
from gateway.config.schema import ServerSettings

UNIT = Path(__file__).resolve().parents[3] / "deploy" / "switchgear.service"
MOST_EXPOSED = 2.0
"""Of 10, by systemd's own measure; below 2 counts as well protected."""


def options() -> dict[str, list[str]]:
    """The values of each option, sections left out."""
    found = defaultdict(list)
    for line in UNIT.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not installed")
    return found


def test_systemd_finds_nothing_wrong(analyze: str, tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    # It wants the program to be there.
    unit.write_text(UNIT.read_text().replace("/opt/switchgear/bin/gateway", sys.executable))

    run = subprocess.run([analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_systemd_calls_it_well_protected(analyze: str) -> None:
    command = [analyze, "security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSED * 10:.0f}", str(UNIT)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout[-400:] + run.stderr


def test_it_runs_a_command_that_there_is() -> None:
    (command,) = options()["ExecStart"]
    program, name, *rest = command.split()

    assert program == "/opt/switchgear/bin/gateway"
    assert name in COMMANDS
    assert rest == ["-c", "/etc/switchgear/config.yaml"]


def test_a_reload_is_the_signal_that_the_gateway_reloads_at() -> None:
    # Without procps there is no /bin/kill; the shell has one of its own.
    assert options()["ExecReload"] == ['/bin/sh -c "kill -HUP $MAINPID"']


def test_it_is_not_killed_while_it_drains() -> None:
    (seconds,) = options()["TimeoutStopSec"]

    assert int(seconds) >= ServerSettings().drain_timeout + 20


def test_a_stop_reaches_the_gateway_before_the_engine_it_still_needs() -> None:
    assert options()["KillMode"] == ["mixed"]
    assert options()["KillSignal"] == ["SIGTERM"]


def test_what_a_restart_cannot_mend_is_not_restarted() -> None:
    assert options()["Restart"] == ["on-failure"]
    (codes,) = options()["RestartPreventExitStatus"]
    assert {int(code) for code in codes.split()} == {ExitCode.USAGE, ExitCode.CONFIG}


def test_it_writes_to_its_own_folders_alone() -> None:
    found = options()

    assert found["ProtectSystem"] == ["strict"]
    assert found["DynamicUser"] == ["yes"]
    assert "ReadWritePaths" not in found
    assert found["WorkingDirectory"] == ["%S/" + found["StateDirectory"][0]]
    environment = dict(pair.split("=", 1) for pair in found["Environment"])
    assert environment["GATEWAY_LOCAL_DIR"].startswith("%S/" + found["StateDirectory"][0])
    assert environment["XDG_RUNTIME_DIR"] == "%t/" + found["RuntimeDirectory"][0]


def test_secrets_are_credentials_and_no_variables() -> None:
    found = options()

    assert found["LoadCredential"] == ["admin_key:/etc/switchgear/credentials/admin_key"]
    assert not re.search(r"(?i)environment.*(key|token|password|secret)=", UNIT.read_text())
    assert "EnvironmentFile" not in found
