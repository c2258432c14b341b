"""The openai-python client, what it asks, and the configuration of the gateway that it asks."""

from __future__ import annotations

from typing import Any

import openai
from openai.types.chat import ChatCompletionMessageParam

from tests.fakes.gateway import KEY, RunningGateway

MODEL = "local"
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello to the sea."}]


def settings(**provider: Any) -> dict[str, Any]:
    return {
        "providers": {"engine": {"type": "local", "context": 1024, **provider}},
        "models": {"small": {"targets": [{"provider": "engine"}]}},
        "aliases": {MODEL: "small"},
    }


def client_of(gateway: RunningGateway, key: str = KEY) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key=key, max_retries=0, timeout=openai.Timeout(120.0)
    )
