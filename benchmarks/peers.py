"""Other gateways, as peers.yaml describes them, where they are installed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.contestant import Plan, Route, Via
from benchmarks.workshop import Upstreams

FOLDER: Final = Path(__file__).parent


def described() -> dict[str, dict[str, Any]]:
    """The entries of the table by name; its head says what each member means."""
    table: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "peers.yaml").read_text())
    return table


def plan(name: str, folder: Path, port: int, upstreams: Upstreams, places: Iterable[Path]) -> Plan | None:
    """Peer *name* on *port*, or None where it is in none of *places* and not on the PATH."""
    entry = described()[name]
    found = find(entry, places)
    if found is None:
        return None
    own = folder / name
    own.mkdir()
    words = {
        "program": str(found),
        "folder": str(own),
        "benchmarks": str(FOLDER),
        "port": str(port),
        "spare_port": str(port + 1000),
        "up_port": str(upstreams.port),
        "key": "sk-benchmark-peer",
    }
    for file_name, text in (entry.get("files") or {}).items():
        (own / file_name).write_text(_filled(text, words))
    port_file = entry.get("port_file")
    return Plan(
        name=name,
        command=[_filled(word, words) for word in entry["command"]],
        routes={Via.PLAIN: Route(entry.get("model", "bench"), entry.get("path", "/v1/chat/completions"))},
        port=0 if port_file else port,
        port_file=Path(_filled(port_file, words)) if port_file else None,
        key=words["key"] if entry.get("key") else None,
        headers=tuple(_filled(header, words) for header in entry.get("headers", ())),
        env={key: _filled(value, words) for key, value in (entry.get("env") or {}).items()},
        version=version_of(entry, found),
    )


def find(entry: Mapping[str, Any], places: Iterable[Path]) -> Path | None:
    """The program of *entry*: in a folder, or in an environment, of *places*, else on the PATH."""
    name: str = entry["program"]
    beside = entry.get("beside")
    for place in (place.absolute() for place in places):
        for base in (place, *sorted(child for child in place.glob("*") if child.is_dir())):
            for candidate in (base / name, base / "bin" / name):
                if candidate.is_file() and (beside is None or any(base.glob(beside))):
                    return candidate
    on_path = None if beside else shutil.which(name)
    return Path(on_path) if on_path else None


def version_of(entry: Mapping[str, Any], program: Path) -> str:
    """The version that the package beside *program* has, without running it."""
    distribution = entry.get("distribution")
    if distribution is None:
        return ""
    wanted = re.escape(distribution)
    for folder in _site_packages(program):
        for info in folder.glob("*.dist-info"):
            if found := re.fullmatch(rf"{wanted}-(.+)\.dist-info", info.name):
                return found[1]
    return ""


def _site_packages(program: Path) -> Iterator[Path]:
    yield from program.parent.parent.glob("lib/python*/site-packages")


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"<(\w+)>", lambda found: words[found[1]], text)
