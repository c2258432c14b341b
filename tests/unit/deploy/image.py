"""The image, built by buildah from the Dockerfile, on a base made of Debian's packages: no daemon, no registry."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.deploy.dockerfile import read_dockerfile

CHECKOUT = Path(__file__).resolve().parents[3]
DOCKERFILE = CHECKOUT / "deploy" / "Dockerfile"
TOOLS = ("buildah", "mmdebstrap", "unshare", "setpriv")

_NOT_IN_SLIM = ("doc", "man", "locale", "info")
# As in the official image: the interpreter is `python`, it has a pip, and nothing is compiled.
_LIKE_THE_OFFICIAL_ONE = (
    'ln -s /usr/bin/python3 "$1/usr/local/bin/python" && rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
    'cd "$1" && wheel=/$(echo usr/share/python-wheels/pip-*.whl) && '
    'chroot "$1" env PYTHONPATH="$wheel" python -m pip install -q --root-user-action ignore --no-index "$wheel"',
    'chroot "$1" dpkg --purge python3-pip-whl && find "$1/usr" -name __pycache__ -prune -exec rm -r {} +',
)
_INSIDE = """set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
mount --bind "$VOLUME" "$ROOT$DATA"
mount --bind "$CONFIG" "$ROOT/etc/switchgear"
mount -o remount,bind,ro "$ROOT"
! touch "$ROOT/probe" 2>/dev/null
exec chroot "$ROOT" setpriv --reuid "$USER" --regid "$GROUP" --clear-groups --no-new-privs --bounding-set=-all \\
    --inh-caps=-all env -i -C "$DATA" "$@"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """What was built."""

    root: Path
    """Its files."""
    config: Mapping[str, Any]
    """What it says of itself, in the form of docker."""

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.config["Env"])

    @property
    def data(self) -> str:
        """The folder that its volume is mounted at."""
        (folder,) = self.config["Volumes"]
        return str(folder)

    def start(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Run *command* as the image's user without any right, where the volume and /tmp alone can be written.

        *folder* holds the volume as `data`, which is made like a new one, and `etc` for what is mounted at
        /etc/switchgear. The network is ours. Signals to the process reach the command.
        """
        user, _, group = self.config["User"].partition(":")
        volume, config = folder / "data", folder / "etc"
        config.mkdir(exist_ok=True)
        if not volume.exists():
            _run("cp", "-a", f"{self.root}{self.data}", str(volume))
        (self.root / "etc/switchgear").mkdir(exist_ok=True)
        told = {**self.environment, "HOME": self.data, **(environment or {})}
        return subprocess.Popen(
            [
                "unshare",
                "--mount",
                "sh",
                "-c",
                _INSIDE,
                "sh",
                *(f"{key}={value}" for key, value in told.items()),
                *command,
            ],
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "ROOT": str(self.root),
                "VOLUME": str(volume),
                "CONFIG": str(config),
                "DATA": self.data,
                "USER": user,
                "GROUP": group,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Like `start`, to its end."""
        process = self.start(command, folder, environment)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        return subprocess.CompletedProcess(list(command), process.returncode, out, err)


@contextmanager
def built() -> Iterator[Image]:
    """Build the base and the image; both are gone after the block, for which root is needed and the `TOOLS`."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    driver = _storage_driver(folder)
    store = ["--root", f"{folder}/store", "--runroot", f"{folder}/run", "--storage-driver", driver]

    def buildah(*command: str) -> str:
        return _run("buildah", *store, *command).strip()

    try:
        arguments, _ = read_dockerfile(DOCKERFILE)
        _make_base(folder / "base.tar", arguments["PYTHON_IMAGE"].rpartition("-")[2])
        base = buildah("from", "scratch")
        buildah("add", "-q", base, f"{folder}/base.tar", "/")
        (folder / "base.tar").unlink()
        buildah("config", "--env", "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", base)
        buildah("commit", "-q", "--rm", base, f"docker.io/library/{arguments['PYTHON_IMAGE']}")
        # The certificates that this machine trusts: an index may be reached through a proxy with one of its own.
        trusted = ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"] if Path("/etc/ssl/certs").exists() else []
        how = ["--isolation", "chroot", "--pull-never", "--format", "docker", *trusted]
        buildah("build", *how, "-f", str(DOCKERFILE), "-t", "switchgear:test", str(CHECKOUT))
        config = json.loads(buildah("inspect", "--type", "image", "switchgear:test"))["Docker"]["config"]
        root = buildah("mount", buildah("from", "--pull-never", "switchgear:test"))
        try:
            yield Image(Path(root), config)
        finally:
            buildah("umount", "--all")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _storage_driver(folder: Path) -> str:
    """The one that lays folders over each other, where the kernel does that here; else the one that copies them."""
    places = ["--root", f"{folder}/try", "--runroot", f"{folder}/try-run"]
    tried = subprocess.run(
        ["buildah", *places, "--storage-driver", "overlay", "images"], capture_output=True, check=False
    )
    return "overlay" if tried.returncode == 0 else "vfs"


def _make_base(archive: Path, release: str) -> None:
    """What Debian's image of Python consists of, but Python is Debian's own."""
    _run(
        *(
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            "--include=ca-certificates,netbase,tzdata,python3,python3-pip-whl",
        ),
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _NOT_IN_SLIM),
        *(f"--customize-hook={hook}" for hook in _LIKE_THE_OFFICIAL_ONE),
        *(release, str(archive)),
    )


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
