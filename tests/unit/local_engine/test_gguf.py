"""What a model's file says of itself, read from files that are whole and files that are not."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from local_engine.gguf import UnreadableGgufError, parts, read_header
from tests.fakes.gguf_files import write_decoder, write_encoder, write_gguf


def test_scalars_short_lists_and_the_lengths_of_long_ones_are_read(tmp_path: Path) -> None:
    header = read_header(write_decoder(tmp_path / "m.gguf", {"llama.some_list": [1, 2, 3], "llama.flag": True}))

    assert header.architecture == "llama"
    assert header.own_number("context_length") == 512
    assert header.own("flag") is True
    assert header.own("some_list") == (1, 2, 3)
    assert header.lengths["tokenizer.ggml.tokens"] == 259
    assert "tokenizer.ggml.tokens" not in header.values


def test_a_value_for_each_layer_may_be_one_for_all(tmp_path: Path) -> None:
    header = read_header(write_decoder(tmp_path / "m.gguf", {"llama.kept": [1, 0, 1]}))

    assert header.for_each("attention.head_count", 3) == [4, 4, 4]
    assert header.for_each("kept", 3) == [1, 0, 1]
    assert header.for_each("nowhere", 2) == [0, 0]


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = write_decoder(tmp_path / "m.gguf")
    assert read_header(path).architecture == "llama"

    write_encoder(path)

    assert read_header(path).architecture == "bert"


@pytest.mark.parametrize("size", [3, 8, 20, 30, 200, 900])
def test_a_file_that_breaks_off_within_its_metadata_is_told(tmp_path: Path, size: int) -> None:
    path = write_decoder(tmp_path / "m.gguf")
    os.truncate(path, size)

    with pytest.raises(UnreadableGgufError, match=r"m\.gguf (breaks off|is not)"):
        read_header(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GGML" + bytes(100), "is not a GGUF file"),
        (b"GGUF" + struct.pack("<I", 9) + bytes(100), "is GGUF version 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "claims to have 1152921504606846976 metadata"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "claims to have a text of"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 77), "unknown type 77"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 4, 1 << 50), "claims to have .* items in k"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 9, 1), "lists within the list k"),
    ],
)
def test_nonsense_is_refused_without_being_believed(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)

    with pytest.raises(UnreadableGgufError, match=message):
        read_header(path)


def test_a_model_in_several_files_is_found_whole(tmp_path: Path) -> None:
    assert parts(tmp_path / "big-00001-of-00003.gguf") == [
        tmp_path / f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)
    ]
    assert parts(tmp_path / "small.gguf") == [tmp_path / "small.gguf"]


def test_the_writer_pads_what_llama_cpp_wants_padded(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", {"general.architecture": "x"}, {"a": (3,), "b": (5, 2)})

    assert path.stat().st_size % 32 == 0
