from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from local_engine import weights
from local_engine.errors import ModelDamagedError, ModelMissingError
from local_engine.registry import KnownModel, find_known
from local_engine.weights import check_weights, sha256_of

CONTENT = b"GGUF\x03\0\0\0" + bytes(range(256)) * 16


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def known() -> KnownModel:
    default = find_known("smollm2-135m-instruct")
    assert default is not None
    return replace(default, size_bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())


def test_intact_weights_pass(file: Path, known: KnownModel) -> None:
    check_weights(file, known)
    check_weights(file, None)


def test_the_digest_is_computed_once_for_each_state_of_the_file(
    file: Path, known: KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []

    def counted(path: Path) -> str:
        computed.append(path)
        return sha256_of(path)

    monkeypatch.setattr(weights, "sha256_of", counted)

    check_weights(file, known)
    check_weights(file, known)
    assert len(computed) == 1

    file.write_bytes(CONTENT)
    check_weights(file, known)
    assert len(computed) == 2


def test_one_wrong_byte_is_found_and_the_message_says_what_helps(file: Path, known: KnownModel) -> None:
    check_weights(file, known)
    file.write_bytes(CONTENT[:-1] + b"\0")

    with pytest.raises(ModelDamagedError, match=r"sha256 .*gateway local rm smollm2-135m-instruct"):
        check_weights(file, known)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not a GGUF file"),
        (b"<html>Not found</html>", "not a GGUF file"),
        (b"GGUF\x07\0\0\0" + bytes(2000), "version 7"),
        (b"GGUF\x03\0\0\0" + bytes(10), "incomplete"),
        (b"GGUF", "version 0"),
    ],
)
def test_what_cannot_be_a_model_is_told(file: Path, content: bytes, complaint: str) -> None:
    file.write_bytes(content)

    with pytest.raises(ModelDamagedError, match=complaint):
        check_weights(file, None)


def test_a_known_model_cut_short_is_told_without_reading_it(file: Path, known: KnownModel) -> None:
    file.write_bytes(CONTENT[:2000])

    with pytest.raises(ModelDamagedError, match=f"2000 bytes instead of {len(CONTENT)}"):
        check_weights(file, known)


def test_a_missing_file_is_missing_rather_than_damaged(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError):
        check_weights(tmp_path / "none.gguf", None)
