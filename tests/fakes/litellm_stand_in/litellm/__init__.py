"""Stands in for the litellm library where a bridge's process loads it: same functions, answers by the model's name.

Put the folder around it on the path of the process that starts the bridge. The library itself is run by the long tests.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

if os.environ.get("STAND_IN_IMPORT") == "fails":
    raise RuntimeError("the stand-in was told not to load")
if os.environ.get("STAND_IN_IMPORT") == "exits":
    os._exit(3)


class Answer:
    """As the library's pydantic models, in what is used of them."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]:
        assert mode == "json"
        assert exclude_none
        return json.loads(json.dumps(self._content))  # type: ignore[no-any-return]  # what was put in


class RateLimitError(Exception):
    status_code = 429

    class response:  # noqa: N801 - an attribute of the library's errors
        headers = {"retry-after": "7"}  # noqa: RUF012 - as above

    message = "litellm.RateLimitError: RateLimitError: AnthropicException - slow down"


class UnsupportedParamsError(Exception):
    status_code = 400
    message = (
        "litellm.UnsupportedParamsError: acme does not support parameters: ['seed'], for model=m. "
        "To drop these, set `litellm.drop_params=True` or for proxy:\n\n..."
    )


def _note(event: str, call: dict[str, Any]) -> None:
    """What happened, for the test to read in the file it named in the bridge's variables."""
    with Path(os.environ["STAND_IN_LOG"]).open("a") as log:
        seen = {name: os.environ.get(name) for name in ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_MODE", "ACME_KEY")}
        variables = sorted(os.environ)
        log.write(json.dumps({"event": event, "call": call, "seen": seen, "variables": variables, "pid": os.getpid()}))
        log.write("\n")


def _chat(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "acme",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }  # fmt: skip


async def _chunks(call: dict[str, Any]) -> AsyncIterator[Answer]:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "acme"}
    try:
        for word in ("Hello", " there"):
            yield Answer({**base, "choices": [{"index": 0, "delta": {"content": word}}]})
        if call["model"] == "acme/endless":
            await asyncio.sleep(60)
        if call["model"] == "acme/breaks":
            raise RateLimitError
        yield Answer({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        yield Answer({**base, "choices": [], "usage": usage})
    except (asyncio.CancelledError, GeneratorExit):
        _note("cancelled", {})
        raise


async def acompletion(**call: Any) -> Any:
    _note("chat", call)
    model = call["model"]
    if model == "acme/limited":
        raise RateLimitError
    if model == "acme/dies":
        os._exit(9)
    if model == "acme/hungry":
        return Answer(_chat(str(len(bytes(1 << 32)))))
    if "seed" in call:
        raise UnsupportedParamsError
    if call.get("stream"):
        return _chunks(call)
    if model == "acme/endless":
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            _note("cancelled", {})
            raise
    return Answer(_chat("Hello there"))


async def atext_completion(**call: Any) -> Any:
    _note("completion", call)
    choice = {"index": 0, "text": "Hello there", "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return Answer(
        {"id": "c", "object": "text_completion", "created": 1, "model": "acme", "choices": [choice], "usage": usage}
    )


async def aembedding(**call: Any) -> Any:
    _note("embedding", call)
    data = [{"index": 0, "object": "embedding", "embedding": [0.5, 0.25]}]
    return Answer({"object": "list", "model": "acme", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})
