"""What a model is for: to generate text, to make vectors, or to rank documents. Its file says so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from local_engine.errors import WrongPurposeError
from local_engine.gguf import Header, UnreadableGgufError, read_header

# Those of llama.cpp's architectures that only read (ggml-org/llama.cpp, src/llama-arch.cpp, read 2026-11-30). Others
# of the kind say so by `attention.causal`.
_ENCODERS: Final = frozenset(
    {
        *("bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3"),
        *("eurobert", "t5encoder", "gemma-embedding"),
    }
)


class Pooling(StrEnum):
    """How the vectors of its tokens become the one of a text."""

    MEAN = "mean"
    CLS = "cls"
    LAST = "last"
    RANK = "rank"


# As llama.cpp counts them; 0 is none.
_POOLINGS: Final = {1: Pooling.MEAN, 2: Pooling.CLS, 3: Pooling.LAST, 4: Pooling.RANK}


@dataclass(frozen=True, slots=True)
class Traits:
    """What the engine has to know of a model before it loads it."""

    generates: bool = True
    """Whether it can, which says nothing of how well: embedding models made of a decoder can too."""
    pooling: Pooling | None = None
    """That it was trained for, if it makes vectors or scores."""
    trained_context: int | None = None
    """Tokens it was trained for."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a model is started for. Ranking takes the whole context, so it goes with nothing else."""

    chat: bool = True
    embeddings: bool = False
    rerank: bool = False


def traits_of(path: Path) -> Traits:
    """The traits of a file; of one that cannot be read, those of an ordinary model: the engine will say what is wrong.

    `OSError` for a file that is not there.
    """
    try:
        return _traits(read_header(path))
    except UnreadableGgufError:
        return Traits()


def decide(traits: Traits, *, chat: bool | None, embeddings: bool | None, rerank: bool | None) -> Purpose:
    """What a model with *traits* is started for, where None leaves the decision to its file.

    `WrongPurposeError` names the option that cannot be.
    """
    ranks = traits.pooling is Pooling.RANK
    if rerank is None:
        rerank = ranks and not chat and not embeddings
    elif rerank and not ranks:
        raise WrongPurposeError("rerank", "the model has no head that ranks: its file names no pooling 'rank'")
    if rerank:
        for option, asked in (("chat", chat), ("embeddings", embeddings)):
            if asked:
                raise WrongPurposeError(option, f"a model that ranks does nothing else: remove '{option}' or 'rerank'")
        return Purpose(chat=False, rerank=True)
    if embeddings is None:
        embeddings = traits.pooling is not None and not ranks and not chat
    if chat is None:
        chat = traits.generates and (traits.pooling is None or not embeddings)
    elif chat and not traits.generates:
        raise WrongPurposeError("chat", "the model only reads, it cannot generate; it is for embeddings")
    if not chat and not embeddings:
        raise WrongPurposeError(
            "embeddings", "nothing is left for the model to do: set one of chat, embeddings, rerank"
        )
    return Purpose(chat=chat, embeddings=embeddings)


def _traits(header: Header) -> Traits:
    reads_only = header.architecture in _ENCODERS or header.own("attention.causal") is False
    pooling = _POOLINGS.get(header.own_number("pooling_type") or 0)
    if reads_only and pooling is None:
        pooling = Pooling.MEAN
    return Traits(not reads_only, pooling, header.own_number("context_length"))
