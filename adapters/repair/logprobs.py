"""Log probabilities of chat answers, from the shapes there are to OpenAI's."""

from __future__ import annotations

from typing import Any

from adapters.draft import AnswerNeeds

_VERY_UNLIKELY = -9999.0  # as OpenAI writes it


def usual(logprobs: Any, text: str, needs: AnswerNeeds | None) -> dict[str, Any] | None:
    """*logprobs* of *text* as ``{content: [...], refusal}``; None for what cannot be read.

    Known besides OpenAI's: parallel arrays (Together, Fireworks with a number, MLX), the same with one number for each
    (Together's streams), and a list of tokens.
    """
    most = needs.top_logprobs if needs is not None and needs.logprobs else None
    tokens = _tokens(logprobs, text)
    if tokens is None:
        return None
    refusal = logprobs.get("refusal") if isinstance(logprobs, dict) else None
    return {"content": [_token(token, most) for token in tokens], "refusal": refusal}


def _tokens(logprobs: Any, text: str) -> list[dict[str, Any]] | None:
    match logprobs:
        case bool():
            return None
        case int() | float():
            return [{"token": text, "logprob": logprobs}]
        case {"content": [*tokens]} | [*tokens]:
            found = [token for token in tokens if isinstance(token, dict)]
            # MLX names tokens by number alone; the text of a single one is that of its chunk.
            return [{"token": text, **found[0]}] if len(found) == 1 else found
        case {"token_logprobs": values}:
            return _from_arrays(logprobs, values, text)
    return None


def _from_arrays(arrays: dict[str, Any], values: Any, text: str) -> list[dict[str, Any]] | None:
    if not isinstance(values, list):
        values = [values]
    names = arrays.get("tokens")
    if not isinstance(names, list) or len(names) != len(values):
        names = [text] if len(values) == 1 else [""] * len(values)
    elif len(names) == 1 and not isinstance(names[0], str):
        names = [text]  # a token's number is no use to a client
    tops = arrays.get("top_logprobs")
    if not isinstance(tops, list) or len(tops) != len(values):
        tops = [None] * len(values)
    return [
        {"token": name if isinstance(name, str) else str(name), "logprob": value, "top_logprobs": _top(top)}
        for name, value, top in zip(names, values, tops, strict=True)
    ]


def _top(top: Any) -> list[dict[str, Any]]:
    match top:
        case dict():
            return [{"token": str(token), "logprob": value} for token, value in top.items()]
        case [*entries]:
            return [entry for entry in entries if isinstance(entry, dict)]
    return []


def _token(token: dict[str, Any], most: int | None) -> dict[str, Any]:
    made = {**_alternative(token), "top_logprobs": [_alternative(one) for one in _top(token.get("top_logprobs"))]}
    if most is not None:
        made["top_logprobs"] = made["top_logprobs"][:most]
    return made


def _alternative(token: dict[str, Any]) -> dict[str, Any]:
    text = token.get("token")
    text = text if isinstance(text, str) else str(text if text is not None else token.get("id", ""))
    value = token.get("logprob")
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else _VERY_UNLIKELY
    found = token.get("bytes")
    return {"token": text, "logprob": number, "bytes": found if isinstance(found, list) else list(text.encode())}


def entries(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The tokens of a chat's *found* log probabilities; what is no token says nothing of the text and is left out."""
    content = found.get("content")
    return [token for token in content if isinstance(token, dict)] if isinstance(content, list) else []


def rows(legacy: Any) -> list[dict[str, Any]]:
    """The parallel arrays of a text completion, one row a token."""
    if not isinstance(legacy, dict) or not isinstance(legacy.get("tokens"), list):
        return []
    count = len(legacy["tokens"])
    columns = {name: values for name, values in legacy.items() if isinstance(values, list) and len(values) == count}
    return [
        {"token": token, "row": {name: values[at] for name, values in columns.items()}}
        for at, token in enumerate(legacy["tokens"])
    ]


def columns(found: list[dict[str, Any]]) -> dict[str, Any]:
    """`rows` turned back."""
    names = found[0]["row"] if found else ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    return {name: [token["row"].get(name) for token in found] for name in names}
