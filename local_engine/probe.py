"""Where an engine listens, and the few calls its supervisor makes to it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from local_engine.errors import EngineCrashedError
from local_engine.purpose import Purpose


@dataclass(frozen=True, slots=True)
class Address:
    """A unix socket's path, or a port of 127.0.0.1 with the key the server asks for there."""

    socket_path: str | None = None
    port: int = 0
    api_key: str = ""
    control: str = ""
    """What the paths begin with by which processes that share the engine agree on it; empty where nobody shares it."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What a request must carry besides its own headers."""
        return (("authorization", f"Bearer {self.api_key}"),) if self.api_key else ()


async def is_healthy(address: Address, timeout_seconds: float) -> bool:
    """Whether the server answers and has its model loaded."""
    try:
        async with asyncio.timeout(timeout_seconds):
            status, _ = await _call(address, "GET", "/health")
    except (OSError, TimeoutError, EngineCrashedError):
        return False
    return status == 200


async def prove(address: Address, purpose: Purpose) -> None:
    """Let the engine do the least of each kind of work it is for; `EngineCrashedError` when it cannot."""
    if purpose.chat:
        await ask(address, "/v1/completions", {"prompt": "Hello", "max_tokens": 1, "cache_prompt": False})
    if purpose.embeddings:
        await ask(address, "/v1/embeddings", {"input": "Hello"})
    if purpose.rerank:
        await ask(address, "/v1/rerank", {"query": "Hello", "documents": ["Hello"]})


async def time_completion(address: Address, prompt: str, max_tokens: int) -> dict[str, Any]:
    """The answer to a prompt, with the engine's own ``timings``."""
    messages = [{"role": "user", "content": prompt}]
    return await ask(address, "/v1/chat/completions", {"messages": messages, "max_tokens": max_tokens})


async def supports_tools(address: Address) -> bool:
    """Whether the chat template of the model has a place for tools; elsewhere the server ignores them silently."""
    try:
        status, answer = await _call(address, "GET", "/props")
        return status == 200 and json.loads(answer)["chat_template_caps"]["supports_tools"] is True
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineCrashedError(f"the engine does not tell what its template can do: {error!r}") from error


async def slots(address: Address) -> list[dict[str, Any]]:
    """What each slot is doing."""
    _, answer = await _call(address, "GET", "/slots")
    decoded: list[dict[str, Any]] = json.loads(answer)
    return decoded


async def ask(address: Address, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a JSON request; `EngineCrashedError` for anything but a 200."""
    try:
        status, answer = await _call(address, "POST", path, json.dumps(body).encode())
    except OSError as error:
        raise EngineCrashedError(f"the engine does not answer {path}: {error}") from error
    if status != 200:
        raise EngineCrashedError(f"the engine answered {path} with {status}: {answer[:300].decode(errors='replace')}")
    try:
        decoded = json.loads(answer)
    except ValueError as error:
        raise EngineCrashedError(f"the engine's answer to {path} broke off") from error
    assert isinstance(decoded, dict)
    return decoded


async def _call(address: Address, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    if address.socket_path is not None:
        reader, writer = await asyncio.open_unix_connection(address.socket_path)
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    try:
        headers = "".join(f"{name}: {value}\r\n" for name, value in address.headers)
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: local\r\nconnection: close\r\n{headers}"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        answer = await reader.read(-1)
    finally:
        writer.close()
    head, _, payload = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise EngineCrashedError(f"the engine broke off its answer to {path}")
    return int(words[1]), payload
