"""Reads a gateway's answer as a client does: a stream is joined until it looks like a whole answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.fakes.openai_answers import payloads
from tests.fakes.raw_client import Answer

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


def read(answer: Answer) -> Any:
    """The answer, decoded; of a stream what its chunks add up to, and under ``error`` the event it broke off with."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        return answer.json
    return join(payloads(answer.body))


def join(events: Iterable[Any]) -> dict[str, Any]:
    """What the events of a chat or completion stream add up to."""
    joined: dict[str, Any] = {"choices": []}
    choices: dict[int, dict[str, Any]] = {}
    ended = False
    for event in events:
        assert not ended, "nothing may follow the end marker"
        if event == "[DONE]":
            ended = True
        elif "error" in event:
            joined["error"] = event["error"]
        else:
            _add(event, joined, choices)
    assert ended or "error" in joined, "a stream ends with [DONE], or with an error"
    joined["choices"] = [choices[index] for index in sorted(choices)]
    return joined


def _add(event: Mapping[str, Any], joined: dict[str, Any], choices: dict[int, dict[str, Any]]) -> None:
    if event.get("usage") is not None:
        assert "usage" not in joined, "usage is told once"
        assert event["choices"] == [], "usage has a chunk of its own"
        joined["usage"] = event["usage"]
    joined |= {name: value for name, value in event.items() if name not in ("choices", "usage")}
    for piece in event["choices"]:
        choice = choices.setdefault(piece["index"], {"index": piece["index"], "message": {}, "finish_reason": None})
        if piece.get("finish_reason") is not None:
            assert choice["finish_reason"] is None, "a choice ends once"
            choice["finish_reason"] = piece["finish_reason"]
        if "text" in piece:
            choice["text"] = choice.get("text", "") + piece["text"]
        _add_delta(choice["message"], piece.get("delta", {}))
        logprobs = piece.get("logprobs")
        if isinstance(logprobs, dict) and "content" in logprobs:
            rows = choice.setdefault("logprobs", {"content": []})["content"]
            rows.extend(logprobs["content"] or ())


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    if delta.get("role"):
        message["role"] = delta["role"]
    for name in _TEXTS:
        if delta.get(name) is not None:
            message[name] = message.get(name, "") + delta[name]
    for piece in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        if piece["index"] == len(calls):
            calls.append({"id": piece["id"], "type": piece["type"], "function": {"name": "", "arguments": ""}})
        for name, text in piece["function"].items():
            calls[piece["index"]]["function"][name] += text or ""


def at(value: Any, path: str) -> Any:
    """What stands at a dotted *path* of members and positions; `KeyError` where there is nothing."""
    for part in path.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (IndexError, TypeError) as error:
            raise KeyError(path) from error
    return value


def has(value: Any, path: str) -> bool:
    """Whether anything stands at *path*."""
    try:
        at(value, path)
    except KeyError:
        return False
    return True
