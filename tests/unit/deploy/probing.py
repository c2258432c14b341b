"""Asks a gateway that was started in another way than the tests' own."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def get(url: str) -> Any:
    """The JSON that *url* answers with; `urllib.error.HTTPError` for a refusal."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def post(url: str, body: Any, key: str) -> Any:
    """The JSON answer, for which it waits as long as a minute."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=60) as answer:
        return json.load(answer)


def until_live(port: int, process: subprocess.Popen[Any]) -> Any:
    """What /health/live says, as soon as it says anything."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "the gateway did not start"
        try:
            return get(f"http://127.0.0.1:{port}/health/live")
        except urllib.error.URLError:
            time.sleep(0.1)  # nothing but an answer tells
    raise AssertionError("not alive within a minute")


def until_refused(url: str) -> None:
    """Return when *url* answers with an error or nobody is there."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            get(url)
        except urllib.error.URLError:
            return
        time.sleep(0.1)  # as above
    raise AssertionError(f"{url} still answers after a minute")
