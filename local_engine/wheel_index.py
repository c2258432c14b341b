"""Where a wheel is, by asking uv or pip: whatever index, mirror and certificates the user set up for them counts."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from local_engine.errors import PullError

_Answer = TypeVar("_Answer")

_RESOLVE_SECONDS = 120
_DOWNLOAD_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class WheelAddress:
    """One wheel on the index, as the index describes it."""

    url: str
    sha256: str

    @property
    def file_name(self) -> str:
        return self.url.split("#")[0].split("?")[0].rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class _Installer:
    """uv or pip, with the commands we need of it."""

    name: str
    resolve: tuple[str, ...]
    fetch: tuple[str, ...]
    read_answer: Callable[[str], WheelAddress]

    def run(self, command: Sequence[str], requirement: str, timeout_seconds: float) -> str:
        """The command's output; `PullError` with the last thing it said when it fails."""
        arguments = [requirement if word == "REQUIREMENT" else word for word in command]
        try:
            done = subprocess.run(  # noqa: S603 - our own words, and a requirement from our own table
                arguments, input=requirement, capture_output=True, text=True, timeout=timeout_seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise PullError(f"{self.name} did not finish within {timeout_seconds:g} s") from error
        if done.returncode != 0:
            raise PullError(f"{self.name}: {_last_words(done.stderr)}")
        return done.stdout


def find_wheel(requirement: str) -> WheelAddress:
    """The address of the wheel that *requirement* names; `PullError` when no installer can tell."""
    return _ask_each(lambda tool: tool.read_answer(tool.run(tool.resolve, requirement, _RESOLVE_SECONDS)))


def fetch_wheel(requirement: str, directory: Path) -> None:
    """Let an installer download *requirement* into *directory*, as a wheel or unpacked."""
    _ask_each(lambda tool: tool.run((*tool.fetch, str(directory)), requirement, _DOWNLOAD_SECONDS))


def _ask_each(question: Callable[[_Installer], _Answer]) -> _Answer:
    problems = []
    for tool in _installers():
        try:
            return question(tool)
        except PullError as error:
            problems.append(str(error))
        except (ValueError, LookupError) as error:  # an answer in a shape we do not know
            problems.append(f"{tool.name}: unexpected answer ({error!r})")
    raise PullError("; ".join(problems) or "neither uv nor pip is available to this Python: install one of them")


def _installers() -> list[_Installer]:
    found = []
    if uv := shutil.which("uv"):
        common = ("--no-deps", "--only-binary", ":all:", "--python", sys.executable)
        found.append(
            _Installer(
                name="uv",
                resolve=(uv, "pip", "compile", "-", "--format", "pylock.toml", "--quiet", "--no-header", *common),
                fetch=(uv, "pip", "install", "REQUIREMENT", "--quiet", *common, "--target"),
                read_answer=_read_pylock,
            )
        )
    if importlib.util.find_spec("pip") is not None:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "2")
        common = ("--no-deps", "--only-binary", ":all:", "--quiet", "REQUIREMENT")
        found.append(
            _Installer(
                name="pip",
                resolve=(*pip, "install", "--dry-run", "--ignore-installed", "--report", "-", *common),
                fetch=(*pip, "download", *common, "--dest"),
                read_answer=_read_pip_report,
            )
        )
    return found


def _read_pip_report(answer: str) -> WheelAddress:
    download: dict[str, Any] = json.loads(answer)["install"][0]["download_info"]
    return WheelAddress(download["url"], download["archive_info"]["hashes"]["sha256"])


def _read_pylock(answer: str) -> WheelAddress:
    wheel: dict[str, Any] = tomllib.loads(answer)["packages"][0]["wheels"][0]
    return WheelAddress(wheel["url"], wheel["hashes"]["sha256"])


def _last_words(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else "failed without a message"
