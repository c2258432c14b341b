"""Tokens of a simulated model: a word with the space before it, long words in pieces."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from typing import Any, Final

_TOKEN: Final = re.compile(r"\s*\S{1,8}|\s+")


def tokens_of(text: str) -> list[str]:
    """*text* in tokens; joined they are the text again."""
    return _TOKEN.findall(text)


def count_tokens(text: str) -> int:
    """How many tokens *text* has."""
    return sum(1 for _ in _TOKEN.finditer(text))


def cut_at(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """*text* up to the first of *stops* in it, and whether there was one."""
    places = [place for place in (text.find(stop) for stop in stops if stop) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _row(token: str, rank: int) -> dict[str, Any]:
    return {"token": token, "logprob": round(math.log(0.5 ** (rank + 1)), 6), "bytes": list(token.encode())}


def logprob_rows(tokens: Sequence[str], top: int) -> list[dict[str, Any]]:
    """The log probabilities of *tokens* in OpenAI's shape, each with *top* candidates."""
    return [
        _row(token, 0)
        | {"top_logprobs": [_row(token if rank == 0 else f"{token}~{rank}", rank) for rank in range(top)]}
        for token in tokens
    ]


def logprob_arrays(tokens: Sequence[str], top: int) -> dict[str, Any]:
    """The same as parallel arrays, as the older completions have them."""
    rows = logprob_rows(tokens, top)
    offsets = [sum(len(token) for token in tokens[:number]) for number in range(len(tokens))]
    return {
        "tokens": list(tokens),
        "token_logprobs": [row["logprob"] for row in rows],
        "top_logprobs": [{one["token"]: one["logprob"] for one in row["top_logprobs"]} for row in rows],
        "text_offset": offsets,
    }


def id_rows(tokens: Sequence[str], top: int) -> list[dict[str, Any]]:
    """The same with token ids; without alternatives that is all they have."""
    rows = [{"id": _id(token), **row} for token, row in zip(tokens, logprob_rows(tokens, top), strict=True)]
    for row in rows:
        del row["bytes"]
        row["top_logprobs"] = [
            {"id": _id(one["token"]), "token": one["token"], "logprob": one["logprob"]} for one in row["top_logprobs"]
        ]
        if not top:
            del row["token"], row["top_logprobs"]
    return rows


def _id(token: str) -> int:
    return zlib.crc32(token.encode()) % 32000
