"""Environments of their own for programs that judge us from outside, whose pins clash with ours and with each other.

`requirements/judges/NAME.txt` holds the pins, made from `NAME.in` as docs/decisions/0003 says:

    uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \\
        --no-emit-find-links --no-annotate requirements/judges/NAME.in -o requirements/judges/NAME.txt
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
PINS = CHECKOUT / "requirements" / "judges"
_INSTALL = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "-r")


def interpreter(name: str, home: Path) -> Path:
    """The interpreter of a judge's environment below *home*; made once, and anew when the pins are others."""
    pins = PINS / f"{name}.txt"
    wanted = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = home / f"{name}-{wanted}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        uv = shutil.which("uv")
        if uv is not None:
            _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
            _run(uv, "pip", "install", "-q", "--python", str(python), *_INSTALL, str(pins))
        else:
            _run(sys.executable, "-m", "venv", str(folder))
            _run(str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *_INSTALL, str(pins))
        (folder / "complete").touch()
    return python


async def ask(python: Path, script: str, orders: Any) -> Any:
    """What *script*, a file of this folder, answers to *orders*; both are JSON."""
    environ = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-I",
        str(Path(__file__).with_name(script)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    out, err = await asyncio.wait_for(process.communicate(json.dumps(orders).encode()), 240)
    assert process.returncode == 0, err.decode()[-4000:]
    return json.loads(out.splitlines()[-1])


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
