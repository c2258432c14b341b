"""llama.cpp's server, bundled or by URL: a check of what it would accept wrongly, or ignore.

Facts: measured on xllamacpp 2026.10 on 2026-11-30. The server takes a wrong type or value of a known field as absent,
answers to unknown roles, to messages without content and to an empty prompt, gives a token for ``max_tokens: 0``, and
answers as usual to whatever it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.messages import check_messages, read_unique
from adapters.patches import invalid, is_neutral, unsupported
from adapters.target import Target
from adapters.types import Body, Operation
from adapters.vocabulary import Support

_LIMITS: Final = ("max_tokens", "max_completion_tokens")
_OFF: Final = (b"null", b"false")
# What helps, for each. (The log probabilities of a text completion come in the shape of a chat's.)
_NOT_IN_COMPLETIONS: Final[Mapping[str, str]] = {
    "logprobs": "Chat completions have them.",
    "echo": "",
    "suffix": "",
    "best_of": "Choose among several choices (n) yourself.",
}
_ONE_ALTERNATIVE: Final = msgspec.Raw(b"1")


def prepare(body: Body, operation: Operation, target: Target) -> None:
    """Refuse what the server would misread."""
    if operation is Operation.EMBEDDINGS:
        _refuse_dimensions(body, target)
        return
    for name in _LIMITS:
        if name in body and bytes(body[name]) == b"0":
            raise invalid(name, f"'{name}' must be at least 1.")
    if operation is Operation.CHAT:
        _check_chat(body, target)
    else:
        _check_completion(body, target)


def _check_chat(body: Body, target: Target) -> None:
    check_messages(body["messages"], target.spec.messages, target.provider)
    if "response_format" in body:
        _check_response_format(body["response_format"], target)
    if "functions" in body and not is_neutral("tools", body["functions"]):
        raise unsupported("functions", target.provider, "Use 'tools'.")
    _check_logprobs(body)


def _check_logprobs(body: Body) -> None:
    alternatives = body.get("top_logprobs")
    nothing_asked = alternatives is None or is_neutral("top_logprobs", alternatives)
    if bytes(body.get("logprobs", b"null")) in _OFF:
        if not nothing_asked:
            raise invalid("top_logprobs", "'top_logprobs' needs 'logprobs': true.")
        body.pop("top_logprobs", None)
    elif bytes(body["logprobs"]) == b"true" and nothing_asked:
        # For 0 the server leaves the log probabilities out, and without a number it gives 20 alternatives a token.
        body["top_logprobs"] = _ONE_ALTERNATIVE


def _check_response_format(raw: msgspec.Raw, target: Target) -> None:
    wanted = read_unique(raw, "response_format")
    if wanted is None:
        return
    kind = wanted.get("type")
    params = target.spec.params
    known = [
        name.partition(".")[2]
        for name, facts in params.items()
        if name.startswith("response_format.") and facts.support is Support.NATIVE
    ]
    if kind not in known:
        raise invalid("response_format.type", f"'response_format.type' has to be one of: {', '.join(known)}.")
    if kind == "json_schema":
        wrapped = wanted.get("json_schema")
        if not isinstance(wrapped, dict) or not isinstance(wrapped.get("schema"), dict):
            param = "response_format.json_schema.schema"
            raise invalid(param, f"'{param}' has to be a JSON schema, which is an object.")


def _check_completion(body: Body, target: Target) -> None:
    for name in _NOT_IN_COMPLETIONS:
        if name in body and not is_neutral(name, body[name]):
            raise unsupported(name, target.provider, _NOT_IN_COMPLETIONS[name])
    prompt = msgspec.json.decode(body["prompt"])
    if isinstance(prompt, list) and not isinstance(prompt[0], int):
        if len(prompt) > 1:
            raise unsupported("prompt", target.provider, "It takes one prompt a request: send one request for each.")
        prompt = prompt[0]
    if prompt == "":
        raise invalid("prompt", "'prompt' is empty; there is nothing to continue.")


def _refuse_dimensions(body: Body, target: Target) -> None:
    # Ignored by the server: vectors of another length than asked for would come back.
    if "dimensions" in body and bytes(body.pop("dimensions")) != b"null":
        raise unsupported("dimensions", target.provider, "Its vectors have one length.")
