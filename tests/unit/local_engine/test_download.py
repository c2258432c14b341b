from __future__ import annotations

import hashlib
import http.client
from pathlib import Path

import pytest

from local_engine import download as module
from local_engine.download import download, part_path
from local_engine.errors import PullError
from tests.fakes.package_index import PackageIndex


def digest(index: PackageIndex) -> str:
    return hashlib.sha256(index.wheel).hexdigest()


def nobody(done: int, total: int | None) -> None:
    pass


def test_progress_ends_with_all_bytes(package_index: PackageIndex, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    download(package_index.wheel_url, tmp_path / "w", digest(package_index), lambda *step: seen.append(step))

    size = len(package_index.wheel)
    assert seen[-1] == (size, size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert (tmp_path / "w").read_bytes() == package_index.wheel


def test_a_transfer_that_breaks_off_is_taken_up_where_it_ended(package_index: PackageIndex, tmp_path: Path) -> None:
    package_index.break_off_after = 300_000

    download(package_index.wheel_url, tmp_path / "w", digest(package_index), nobody)

    assert package_index.wheel_requests == [None, "bytes=300000-"]
    assert (tmp_path / "w").read_bytes() == package_index.wheel


def test_what_an_earlier_call_left_is_continued(package_index: PackageIndex, tmp_path: Path) -> None:
    part_path(tmp_path / "w").write_bytes(package_index.wheel[:1000])
    seen: list[int] = []

    download(package_index.wheel_url, tmp_path / "w", digest(package_index), lambda done, total: seen.append(done))

    assert package_index.wheel_requests == ["bytes=1000-"]
    assert seen[0] > 1000
    assert (tmp_path / "w").read_bytes() == package_index.wheel


def test_a_part_that_is_whole_already_is_not_fetched_again(package_index: PackageIndex, tmp_path: Path) -> None:
    part_path(tmp_path / "w").write_bytes(package_index.wheel)

    download(package_index.wheel_url, tmp_path / "w", digest(package_index), nobody)

    assert (tmp_path / "w").read_bytes() == package_index.wheel


def test_a_server_without_ranges_sends_it_from_the_start(package_index: PackageIndex, tmp_path: Path) -> None:
    package_index.honours_ranges = False
    part_path(tmp_path / "w").write_bytes(b"x" * 1000)

    download(package_index.wheel_url, tmp_path / "w", digest(package_index), nobody)

    assert (tmp_path / "w").read_bytes() == package_index.wheel


def test_wrong_bytes_are_refused_and_not_continued(package_index: PackageIndex, tmp_path: Path) -> None:
    part_path(tmp_path / "w").write_bytes(b"x" * 1000)

    with pytest.raises(PullError, match="sha256"):
        download(package_index.wheel_url, tmp_path / "w", digest(package_index), nobody)

    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_will_not_change_is_not_asked_for_again(package_index: PackageIndex, tmp_path: Path) -> None:
    with pytest.raises(PullError, match="404"):
        download(package_index.wheel_url + ".asc", tmp_path / "w", digest(package_index), nobody)


def test_a_server_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.0)

    with pytest.raises(PullError, match="refused"):
        download("http://127.0.0.1:9/w", tmp_path / "w", "0" * 64, nobody)


def test_only_addresses_an_index_may_give_are_opened(tmp_path: Path) -> None:
    with pytest.raises(PullError, match="ftp"):
        download("ftp://127.0.0.1/w", tmp_path / "w", "0" * 64, nobody)


def test_an_answer_cut_inside_a_chunk_is_told(
    package_index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy that cuts a chunked answer makes http.client raise its own kind of error while reading.
    def break_off(*_: object) -> bytes:
        raise http.client.IncompleteRead(b"")

    monkeypatch.setattr(http.client.HTTPResponse, "read", break_off)

    with pytest.raises(PullError, match="IncompleteRead"):
        download(package_index.wheel_url, tmp_path / "w", digest(package_index), nobody)
