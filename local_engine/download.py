"""A download that can be broken off and taken up again, and is believed only when its digest is right."""

from __future__ import annotations

import http
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from local_engine.errors import PullError
from local_engine.weights import sha256_of

# Bytes done, and bytes in all where that is known.
Progress = Callable[[int, int | None], None]

_CHUNK_BYTES = 1 << 17
_TIMEOUT_SECONDS = 30.0
_ATTEMPTS = 4
_PAUSE_SECONDS = 1.0

# The variables people set for pip and its libraries, which urllib does not read; SSL_CERT_FILE it does.
_CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class _BrokenOffError(Exception):
    """The transfer ended early; what came so far is on disk."""


def part_path(target: Path) -> Path:
    """Where an unfinished download waits to be continued."""
    return target.with_name(target.name + ".part")


def download(url: str, target: Path, sha256: str, progress: Progress) -> None:
    """Fetch *url* into *target*, continuing what an earlier call left. `PullError` says what failed."""
    part = part_path(target)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _transfer(url, part, progress)
            break
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            if attempt == _ATTEMPTS or not _may_pass(error):
                raise PullError(f"the download failed: {_reason(error)}") from error
        except _BrokenOffError as error:
            if attempt == _ATTEMPTS:
                raise PullError(f"the download broke off {_ATTEMPTS} times: {error}") from error
        time.sleep(_PAUSE_SECONDS * attempt)
    if sha256_of(part) != sha256:
        part.unlink()  # continuing it could never end well
        raise PullError("what was downloaded has not the sha256 its index names: try again")
    part.replace(target)


def _transfer(url: str, part: Path, progress: Progress) -> None:
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310
    if request.type not in ("http", "https", "file"):
        raise PullError(f"cannot download from a {request.type} address")
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=_tls())  # noqa: S310
    except urllib.error.HTTPError as error:
        with error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
        return  # there is nothing after what we have: the digest decides whether that is all
    with response:
        if done and response.status != http.HTTPStatus.PARTIAL_CONTENT:
            done = 0  # the server sends it from the start
        length = response.headers.get("content-length")
        total = done + int(length) if length is not None else None
        with part.open("ab" if done else "wb") as file:
            while chunk := response.read(_CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
    if total is not None and done < total:
        raise _BrokenOffError(f"{done} of {total} bytes came")


def _tls() -> ssl.SSLContext:
    certificates = next((os.environ[name] for name in _CA_VARIABLES if os.environ.get(name)), None)
    if certificates is not None and Path(certificates).is_file():
        return ssl.create_default_context(cafile=certificates)
    return ssl.create_default_context()


def _may_pass(error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code == http.HTTPStatus.TOO_MANY_REQUESTS or error.code >= 500
    return not (isinstance(error, urllib.error.URLError) and isinstance(error.reason, ssl.SSLCertVerificationError))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    return str(error.reason) if isinstance(error, urllib.error.URLError) else str(error) or type(error).__name__
