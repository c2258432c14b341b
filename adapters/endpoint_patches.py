"""Patches for text completions and embeddings, of which an endpoint may have less than OpenAI's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.patches import leave_out, unsupported
from adapters.vocabulary import PARAMETERS

_decode = msgspec.json.Decoder().decode

OF_COMPLETIONS_ALONE: Final = frozenset(("best_of", "echo", "logprobs", "suffix"))
"""Parameters of text completions that chats lack, or have in another shape."""

_OF_COMPLETIONS: Final = OF_COMPLETIONS_ALONE | frozenset((
    "prompt", "frequency_penalty", "logit_bias", "max_tokens", "n", "presence_penalty", "seed", "stop", "stream",
    "stream_options", "temperature", "top_p", "user",
))  # fmt: skip
"""OpenAI's parameters of a text completion."""

CHAT_ONLY: Final = frozenset(name.partition(".")[0] for name in PARAMETERS) - _OF_COMPLETIONS
"""Those that a chat completion alone has."""

_SEVERAL_PROMPTS: Final = "several_prompts"
_DIMENSIONS: Final = "dimensions"

_ENCODINGS: Final = frozenset(("base64", "encoding_format"))


class EndpointPatches:
    """Leaves out, or refuses, what an endpoint lacks."""

    def __init__(self, lacks: Sequence[str], unsure: Sequence[str], provider: str) -> None:
        """*unsure*: what it takes, perhaps without effect."""
        self._provider = provider
        self._one_prompt = _SEVERAL_PROMPTS in lacks
        self._unsure_dimensions = _DIMENSIONS in unsure
        self._lacks = frozenset(lacks) - {_SEVERAL_PROMPTS} - _ENCODINGS
        self._one_encoding = bool(_ENCODINGS & frozenset(lacks))

    def __call__(self, draft: Draft) -> None:
        """Make *draft* hold only what the endpoint has."""
        for name in sorted(self._lacks & draft.body.keys()):
            leave_out(draft, name, self._provider)
        if self._unsure_dimensions and _DIMENSIONS in draft.body:
            draft.answer_needs().dimensions = _decode(draft.body[_DIMENSIONS]) or 0
        if self._one_encoding:
            # Vectors are encoded here as the client wants them, whatever comes.
            draft.body.pop("encoding_format", None)
        if self._one_prompt and _is_several(_decode(draft.body["prompt"])):
            raise unsupported("prompt", self._provider, "It takes one prompt a request: send one request for each.")


def _is_several(prompt: Any) -> bool:
    """Whether *prompt* is a list of several texts, or of several lists of tokens."""
    return isinstance(prompt, list) and len(prompt) > 1 and not isinstance(prompt[0], int)
