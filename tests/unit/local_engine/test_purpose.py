"""What a model is started for: as its file says, unless the settings say otherwise and it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_engine.errors import WrongPurposeError
from local_engine.purpose import Pooling, Purpose, Traits, decide, traits_of
from tests.fakes.gguf_files import write_decoder, write_encoder

DECODER = Traits()
ENCODER = Traits(generates=False, pooling=Pooling.CLS, trained_context=512)
RANKER = Traits(generates=False, pooling=Pooling.RANK)
DECODER_FOR_VECTORS = Traits(pooling=Pooling.LAST)


def test_the_file_tells_what_a_model_can(tmp_path: Path) -> None:
    own = {"llama.pooling_type": 3}
    assert traits_of(write_decoder(tmp_path / "d.gguf")) == Traits(trained_context=512)
    assert traits_of(write_decoder(tmp_path / "v.gguf", own)) == Traits(pooling=Pooling.LAST, trained_context=512)
    assert traits_of(write_encoder(tmp_path / "e.gguf")) == ENCODER
    assert traits_of(write_encoder(tmp_path / "r.gguf", ranks=True)).pooling is Pooling.RANK


def test_a_file_nobody_can_read_is_left_to_the_engine(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")

    assert traits_of(tmp_path / "m.gguf") == Traits()


@pytest.mark.parametrize(
    ("traits", "asked", "purpose"),
    [
        (DECODER, {}, Purpose(chat=True)),
        (DECODER, {"embeddings": True}, Purpose(chat=True, embeddings=True)),
        (DECODER, {"embeddings": True, "chat": False}, Purpose(chat=False, embeddings=True)),
        (ENCODER, {}, Purpose(chat=False, embeddings=True)),
        (RANKER, {}, Purpose(chat=False, rerank=True)),
        (RANKER, {"embeddings": True}, Purpose(chat=False, embeddings=True)),
        (DECODER_FOR_VECTORS, {}, Purpose(chat=False, embeddings=True)),
        (DECODER_FOR_VECTORS, {"chat": True}, Purpose(chat=True)),
        (DECODER_FOR_VECTORS, {"chat": True, "embeddings": True}, Purpose(chat=True, embeddings=True)),
    ],
)
def test_what_is_left_open_is_decided_by_the_file(traits: Traits, asked: dict[str, bool], purpose: Purpose) -> None:
    options: dict[str, bool | None] = {"chat": None, "embeddings": None, "rerank": None}

    assert decide(traits, **{**options, **asked}) == purpose


@pytest.mark.parametrize(
    ("traits", "asked", "option"),
    [
        (ENCODER, {"chat": True}, "chat"),
        (ENCODER, {"embeddings": False}, "embeddings"),
        (DECODER, {"chat": False}, "embeddings"),
        (DECODER, {"rerank": True}, "rerank"),
        (RANKER, {"rerank": True, "embeddings": True}, "embeddings"),
        (RANKER, {"rerank": True, "chat": True}, "chat"),
    ],
)
def test_what_cannot_be_names_its_option(traits: Traits, asked: dict[str, bool], option: str) -> None:
    options: dict[str, bool | None] = {"chat": None, "embeddings": None, "rerank": None}

    with pytest.raises(WrongPurposeError) as refusal:
        decide(traits, **{**options, **asked})

    assert refusal.value.option == option
