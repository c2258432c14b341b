"""The figures of a ``usage``, as providers send them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from adapters.types import Usage

# More than any context window: a figure beyond it is worth nothing, and would not fit the columns it is stored in.
MOST_TOKENS: Final = 1_000_000_000


class _UsageFields(msgspec.Struct, gc=False):
    """The ``usage`` object as providers send it; numbers may be absent, null or nonsense."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: dict[str, Any] | None = None
    completion_tokens_details: dict[str, Any] | None = None
    cached_tokens: Any = None
    """Moonshot's place for it (diegosouzapw/OmniRoute#9750)."""
    prompt_cache_hit_tokens: Any = None
    """DeepSeek's (NousResearch/hermes-agent#61871)."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """What they are called in the API of responses, and at Anthropic's."""


class _Figures(msgspec.Struct, gc=False):
    """The counts that clients read, as OpenAI tells them."""

    prompt_tokens: Annotated[int, msgspec.Meta(ge=0)]
    completion_tokens: Annotated[int, msgspec.Meta(ge=0)]
    total_tokens: Annotated[int, msgspec.Meta(ge=0)]


def _count(details: dict[str, Any] | None, name: str) -> int:
    return _positive(details.get(name)) if details else 0


def _positive(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


_decode_figures = msgspec.json.Decoder(_Figures | None).decode
_decode_usage = msgspec.json.Decoder(_UsageFields | None).decode
# Some write counts as 12.0 or "12".
_decode_lax = msgspec.json.Decoder(_UsageFields | None, strict=False).decode


def read_usage(usage: msgspec.Raw) -> Usage | None:
    """The figures in a ``usage`` member; None when one is missing or absurd (U33: such a value is worth nothing)."""
    try:
        fields = _decode_usage(usage)
    except msgspec.DecodeError:
        try:
            fields = _decode_lax(usage)
        except msgspec.DecodeError:
            return None  # an answer is no worse for a count nobody can read
    if fields is None:
        return None
    prompt, completion = fields.prompt_tokens, fields.completion_tokens
    if prompt is None:
        prompt, completion = fields.input_tokens, fields.output_tokens if completion is None else completion
    if completion is None:  # embeddings have none; of an answer that was all thought some tell only the total
        completion = max(0, (fields.total_tokens or 0) - (prompt or 0))
    if prompt is None or not (0 <= prompt <= MOST_TOKENS and 0 <= completion <= MOST_TOKENS):
        return None
    elsewhere = fields.cached_tokens or fields.prompt_cache_hit_tokens
    if fields.prompt_tokens_details is None and fields.completion_tokens_details is None and not elsewhere:
        return Usage(prompt, completion)
    return Usage(
        prompt,
        completion,
        cached_tokens=min(prompt, _count(fields.prompt_tokens_details, "cached_tokens") or _positive(elsewhere)),
        reasoning_tokens=min(completion, _count(fields.completion_tokens_details, "reasoning_tokens")),
    )


def are_all_there(usage: msgspec.Raw) -> bool:
    """Whether the counts are all there and in order, or there is no usage at all."""
    try:
        _decode_figures(usage)
    except msgspec.DecodeError:
        return False
    return True
