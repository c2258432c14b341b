"""From a request's body to a call of the library: which of its arguments clients may choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.bridge.orders import Orders

_SHARED: Final = frozenset({
    "model", "temperature", "top_p", "n", "stream", "stream_options", "stop", "max_tokens", "presence_penalty",
    "frequency_penalty", "logit_bias", "user", "seed", "logprobs",
})  # fmt: skip
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "/v1/chat/completions": _SHARED | {
        "messages", "max_completion_tokens", "response_format", "tools", "tool_choice", "parallel_tool_calls",
        "top_logprobs", "reasoning_effort", "thinking", "verbosity", "modalities", "audio", "prediction",
        "service_tier", "store", "safety_identifier", "prompt_cache_key", "web_search_options",
    },
    "/v1/completions": _SHARED | {"prompt", "suffix", "echo", "best_of"},
    "/v1/embeddings": frozenset({"model", "input", "dimensions", "encoding_format", "user"}),
}  # fmt: skip
"""What a request may hold, by its path. Nothing else goes through: the library takes the address to send the key to,
the provider and much more by arguments of the same kind."""

_NEVER_PASSED: Final = frozenset({"encoding_format"})
"""The gateway gives vectors the encoding that was asked for, and some providers are refused the very word."""


class NotCallableError(Exception):
    """A request no call can be made of; *param* is the member that is wrong."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


def arguments(path: str, body: Any, orders: Orders, key: str) -> dict[str, Any]:
    """The keyword arguments of the call that answers *body*; raises `NotCallableError`."""
    if not isinstance(body, dict):
        raise NotCallableError("the body has to be a JSON object")
    for name in body:
        if name not in FIELDS[path]:
            raise NotCallableError(f"'{name}' is not passed on to providers behind this bridge", name)
    if not isinstance(body.get("model"), str):
        raise NotCallableError("'model' is missing", "model")
    # One attempt: the gateway counts, pays for and reports each one, so the library must not make more of its own.
    call: dict[str, Any] = {"max_retries": 0, **orders.options}
    call |= {name: value for name, value in body.items() if value is not None and name not in _NEVER_PASSED}
    if orders.base_url:
        call["api_base"] = orders.base_url
    if orders.headers:
        call["extra_headers"] = dict(orders.headers)
    if key:
        call["api_key"] = key
    return call
