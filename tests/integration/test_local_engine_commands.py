"""`gateway local` with the real model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def gateway(store: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from gateway.cli.main import main; main()", "local", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path.cwd()), "GATEWAY_LOCAL_DIR": str(store)},
    )


def test_doctor_runs_the_model_and_tells_its_speed(model_file: Path) -> None:
    done = gateway(model_file.parent, "doctor")

    assert done.returncode == 0, done.stdout
    assert "OK   model smollm2-135m-instruct" in done.stdout
    assert "tokens a second" in done.stdout


def test_pulling_what_is_here_prints_its_path(model_file: Path) -> None:
    done = gateway(model_file.parent, "pull", "--offline")

    assert (done.returncode, done.stdout) == (0, f"{model_file}\n")
