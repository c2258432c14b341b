"""What a comparison needs before it can begin: the mock and the load compiled, wrk found, certificates, two mocks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.answers import scripts, write_scripts
from benchmarks.processes import pinned_to

_SOURCES: Final = Path(__file__).parent / "native"
_NEEDED: Final = "a C compiler and OpenSSL's headers are needed (Debian: gcc libc6-dev libssl-dev)"


class MissingToolError(Exception):
    """Something that has to be installed first is not there."""


@dataclass(frozen=True, slots=True)
class Upstreams:
    """The ports of the mock upstreams, and the file whose certificate vouches for the one with TLS."""

    port: int
    tls_port: int
    ca_file: Path


def compile_tool(name: str, folder: Path, *libraries: str) -> Path:
    """Compile ``native/NAME.c`` into *folder*."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise MissingToolError(_NEEDED)
    made = folder / name
    command = [
        compiler,
        "-O2",
        "-o",
        str(made),
        str(_SOURCES / f"{name}.c"),
        *(f"-l{library}" for library in libraries),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise MissingToolError(f"{_NEEDED}: {ran.stderr.strip()[:400]}")
    return made


@contextmanager
def upstreams(folder: Path, cpus: Collection[int]) -> Iterator[Upstreams]:
    """Two mocks on *cpus*, one of them with TLS under an authority made for this run."""
    mock = compile_tool("mock", folder, "ssl", "crypto")
    write_scripts(folder / "scripts", scripts())
    certificate, key, ca_file = make_certificates(folder)
    with (
        running_mock(mock, folder, cpus) as port,
        running_mock(mock, folder, cpus, str(certificate), str(key)) as tls_port,
    ):
        yield Upstreams(port, tls_port, ca_file)


@contextmanager
def running_mock(mock: Path, folder: Path, cpus: Collection[int], *tls: str) -> Iterator[int]:
    """The port of a mock that plays the scripts in *folder*; *tls* are files with its certificate and key."""
    process = subprocess.Popen(
        [str(mock), "0", str(folder / "scripts"), *tls], stdout=subprocess.PIPE, preexec_fn=pinned_to(cpus)
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A certificate for loopback, its key, and the authority that signed it."""
    try:
        import trustme
    except ImportError:
        raise MissingToolError("trustme is needed; it is among the developers' requirements") from None
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key, ca_file = folder / "mock.pem", folder / "mock.key", folder / "ca.pem"
    issued.private_key_pem.write_to_path(str(key))
    certificate.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    authority.cert_pem.write_to_path(str(ca_file))
    return certificate, key, ca_file
