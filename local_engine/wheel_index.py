"""Where a wheel is, by asking uv or pip: whatever index, mirror and certificates the user set up for them counts."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from local_engine.errors import PullError

_Answer = TypeVar("_Answer")

_PIP_RETRIES = "2"
_RESOLVE_SECONDS = 120
_DOWNLOAD_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class _Installer:
    """uv or pip, with the commands we need of it."""

    name: str
    resolve: tuple[str, ...]
    fetch: tuple[str, ...]
    read_url: Callable[[str, str], str]
    """Finds the address of a wheel, given by its file name, in what `resolve` printed."""

    def run(self, command: Sequence[str], requirement: str, timeout_seconds: float) -> str:
        """The command's output; `PullError` with the last thing it said when it fails."""
        name = requirement.partition("==")[0]
        arguments = [{"REQUIREMENT": requirement, "NAME": name}.get(word, word) for word in command]
        try:
            done = subprocess.run(  # noqa: S603 - our own words, and a requirement from our own table
                arguments, input=requirement, capture_output=True, text=True, timeout=timeout_seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise PullError(f"{self.name} did not finish within {timeout_seconds:g} s") from error
        if done.returncode != 0:
            raise PullError(f"{self.name}: {_last_words(done.stderr)}")
        return done.stdout


def find_wheel(requirement: str, wheel_name: str) -> str:
    """The address of the wheel of *requirement* with this file name; `PullError` when no installer can tell."""
    return _ask_each(lambda tool: tool.read_url(tool.run(tool.resolve, requirement, _RESOLVE_SECONDS), wheel_name))


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
        except (ValueError, LookupError, StopIteration) as error:  # an answer in a shape we do not know
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
                read_url=_read_pylock,
            )
        )
    if python := _python_with_pip():
        pip = (python, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", _PIP_RETRIES)
        common = ("--no-deps", "--only-binary", ":all:", "--quiet", "REQUIREMENT")
        found.append(
            _Installer(
                name="pip",
                # `install --dry-run --report` would be the documented way, but it downloads the wheel to look into it
                # (pip 22.3 to 26.3, seen on 2026-11-30), which is what we are about to do, and show.
                resolve=(*pip, "-vv", "index", "versions", "NAME"),
                fetch=(*pip, "download", *common, "--dest"),
                read_url=_read_found_links,
            )
        )
    return found


def _python_with_pip() -> str | None:
    """This interpreter, or the one that its environment was made from: a lean environment leaves pip to that."""
    if importlib.util.find_spec("pip") is not None:
        return sys.executable
    # Not documented, but what venv itself goes by, on every platform. (-P: the directory we happen to be in is no place
    # to look for a pip.)
    base: str = getattr(sys, "_base_executable", sys.executable)
    if base == sys.executable:
        return None
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)"
    try:
        asked = subprocess.run((base, "-P", "-c", look), capture_output=True, timeout=_RESOLVE_SECONDS, check=False)  # noqa: S603 - our own words
    except (OSError, subprocess.TimeoutExpired):
        return None
    return base if asked.returncode == 0 else None


def _read_found_links(answer: str, wheel_name: str) -> str:
    return _of_wheel(re.findall(r"Found link (\S+) \(from ", answer), wheel_name)


def _read_pylock(answer: str, wheel_name: str) -> str:
    wheels = tomllib.loads(answer)["packages"][0]["wheels"]
    return _of_wheel((wheel["url"] for wheel in wheels), wheel_name)


def _of_wheel(urls: Iterable[str], wheel_name: str) -> str:
    return next(url for url in urls if urlsplit(url).path.endswith("/" + wheel_name))


def _last_words(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else "failed without a message"
