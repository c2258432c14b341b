"""The Dockerfile's steps, done without a builder: what they make is small, and serves for a user who may do little.

Where buildah is installed, test_image.py does more; this needs a Python that other users may run, and nothing else.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.deploy.dockerfile import read_dockerfile
from tests.unit.deploy.probing import free_port, get, until_live

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CHECKOUT = Path(__file__).resolve().parents[3]
DEPLOY = CHECKOUT / "deploy"
_, (BUILD, FINAL) = read_dockerfile(DEPLOY / "Dockerfile")
NOBODY = "65534"

BASE_MEGABYTES = 150
"""For python:3.13-slim-trixie, compiled, and libgomp1: assumed. Made of Debian's packages it is 127 (test_image.py)."""
IMAGE_MEGABYTES = 400


@dataclass(frozen=True, slots=True)
class Made:
    """What the build stage makes, and a folder that stands for the volume."""

    venv: Path
    volume: Path


def run(*command: str, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, **options)  # type: ignore[call-overload]  # options of any kind
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that other users may run too."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("setpriv and unshare (util-linux) are not installed")
    check = "import sys, venv; sys.exit(sys.version_info < (3, 11))"
    for found in ("/usr/bin/python3", "/usr/local/bin/python3", os.path.realpath(sys.executable)):
        tried = subprocess.run(
            ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", found, "-I", "-c", check],
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return found
    pytest.skip("no Python of 3.11 or newer that other users may run")


@pytest.fixture(scope="module")
def made(python: str) -> Iterator[Made]:
    """The build stage's last state, at a place that other users can look into."""
    root = Path(tempfile.mkdtemp(dir="/var/tmp"))
    root.chmod(0o755)
    try:
        yield _build(root, python)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _build(root: Path, python: str) -> Made:
    source, venv, tools = root / "src", root / "switchgear", root / "tools"
    source.mkdir()
    for copy in BUILD.all("COPY"):
        for name in copy.arguments[:-1]:
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (CHECKOUT / name).is_dir():
                shutil.copytree(CHECKOUT / name, target, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))
            else:
                shutil.copy(CHECKOUT / name, target)
    # The image's own Python is one to install build tools into; here that is an environment.
    run(python, "-m", "venv", "--without-pip", str(tools))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(tools / "bin" / "python")]
    pinned = ["-q", "--no-compile", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
    run(*pip, "install", *pinned, "-r", str(source / "requirements/build.txt"))
    run(python, "-m", "venv", "--without-pip", str(venv))
    into = [*pip[:-1], str(venv / "bin" / "python"), "install"]
    run(*into, *pinned, "-r", str(source / "requirements/runtime.txt"))
    run(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", str(root / "wheels"), ".", cwd=source)
    (wheel,) = (root / "wheels").iterdir()
    run(*into, "-q", "--no-compile", "--no-deps", "--no-index", str(wheel))
    run(python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(venv / "lib"))
    volume = root / "volume"
    volume.mkdir(mode=0o750)
    os.chown(volume, int(NOBODY), int(NOBODY))
    return Made(venv, volume)


def megabytes(folder: Path) -> float:
    return int(run("du", "-sk", str(folder)).split()[0]) / 1000


def test_the_image_stays_small(made: Made) -> None:
    size = megabytes(made.venv)

    assert size + BASE_MEGABYTES < IMAGE_MEGABYTES, f"{size:.0f} MB beside the base image"


def test_nothing_of_the_build_is_left_in_it(made: Made) -> None:
    (packages,) = (made.venv / "lib").glob("python3*/site-packages")
    names = {path.name.partition("-")[0].lower() for path in packages.iterdir()}

    assert names >= {"gateway", "policies", "adapters", "local_engine", "switchgear"}
    assert not names & {"pip", "setuptools", "hatchling", "pytest", "migrations", "tests"}


def test_it_serves_with_a_root_that_cannot_be_written(made: Made) -> None:
    port = free_port()
    config = made.volume.parent / "config.yaml"
    config.write_text(
        'version: 1\nproviders: {up: {type: openai_compatible, base_url: "http://127.0.0.1:1/v1"}}\n'
        "models: {m: {targets: [{provider: up, model: m}]}}\n"
    )
    with _serving(made, config, port) as process:
        live = until_live(port, process)
        ready = get(f"http://127.0.0.1:{port}/health/ready")
        probe = _health_check(made, port)
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)

    assert live == {"status": "alive"}
    assert ready["status"] == "ready"
    assert probe == 0
    assert code == 0
    assert {path.name for path in made.volume.iterdir()} >= {"gateway.db", "gateway.pepper"}
    assert all(path.stat().st_uid == int(NOBODY) for path in made.volume.iterdir())


def test_the_engines_library_loads_where_no_memory_may_be_both_written_and_run(made: Made) -> None:
    """What ``MemoryDenyWriteExecute`` of the unit forbids: a page that was written is never run."""
    # prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN), since Linux 6.3
    script = (
        "import ctypes, sys\n"
        "if ctypes.CDLL(None, use_errno=True).prctl(65, 1, 0, 0, 0): sys.exit('unknown here')\n"
        "import xllamacpp, uvloop, httptools, jsonschema_rs, orjson, msgspec, asyncpg\n"
        "from gateway.http.app import create_http_app\n"
    )
    done = subprocess.run([made.venv / "bin" / "python", "-c", script], capture_output=True, text=True, check=False)

    if done.stderr.strip() == "unknown here":
        pytest.skip("this kernel has no PR_SET_MDWE")
    assert (done.returncode, done.stderr) == (0, "")


@contextmanager
def _serving(made: Made, config: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The image's command, as nobody, without capabilities, in a file system that is read-only but for the volume."""
    (command,) = json.loads(FINAL.one("ENTRYPOINT").rest)
    arguments = [str(config) if word.endswith("config.yaml") else word for word in json.loads(FINAL.one("CMD").rest)]
    environment = {name: value for name, value in FINAL.environment.items() if not name.startswith("PATH")}
    environment |= {
        "PATH": f"{made.venv}/bin:/usr/bin:/bin",
        "GATEWAY_SERVER__HOST": "127.0.0.1",
        "GATEWAY_SERVER__PORT": str(port),
        "GATEWAY_LOCAL_DIR": f"{made.volume}/models",
    }
    locked_in = (
        f"mount --make-rprivate / && mount --bind {made.volume} {made.volume} && mount -t tmpfs tmpfs /tmp"
        f" && mount -o remount,bind,ro / && cd {made.volume}"
        " && ! touch /probe 2>/dev/null"
        f" && exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --no-new-privs --bounding-set=-all"
        f" --inh-caps=-all {made.venv}/bin/{command} {shlex.join(arguments)}"
    )
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", locked_in], env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _health_check(made: Made, port: int) -> int:
    """The exit code of the image's own probe."""
    command = json.loads(FINAL.one("HEALTHCHECK").rest.partition(" CMD ")[2])
    command = [part.replace(":" + FINAL.environment["GATEWAY_SERVER__PORT"], f":{port}") for part in command]
    return subprocess.run(command, env={"PATH": f"{made.venv}/bin"}, timeout=10, check=False).returncode
