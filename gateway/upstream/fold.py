"""Turns plain requests to the local engine into streamed ones, and the stream back into one answer.

The engine (xllamacpp 2026.10, measured on 2026-11-30) notices that a client has left only when it writes to it. A
plain answer is written once, at its end: abandoned, it would occupy its slot until then, for minutes at worst.
"""

from __future__ import annotations

from typing import Any

import msgspec

_FOLDED_TEXTS = ("content", "reasoning_content")


def as_stream(path: str, body: bytes) -> bytes | None:
    """The streamed form of a plain generation request; None for anything else, which goes as it is."""
    if not path.endswith("/completions"):
        return None
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None  # the engine will say what is wrong with it
    if bytes(members.get("stream", b"false")) not in (b"false", b"null"):
        return None
    members["stream"] = msgspec.Raw(b"true")
    # Something to write while a long prompt is read, so that leaving is noticed then too.
    members["return_progress"] = msgspec.Raw(b"true")
    members["stream_options"] = msgspec.Raw(b'{"include_usage":true}')
    return msgspec.json.encode(members)


def fold(events: bytes) -> tuple[int, bytes]:
    """Status and body of the plain answer that says the same as a whole stream."""
    answer: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    usage: dict[str, Any] | None = None
    for line in events.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        event: dict[str, Any] = msgspec.json.decode(line[6:])
        if "error" in event:
            code = event["error"].get("code")
            return code if isinstance(code, int) and 400 <= code <= 599 else 500, line[6:]
        for choice in event.pop("choices", ()):
            _add_choice(choices.setdefault(choice["index"], {"index": choice["index"]}), choice)
        event.pop("prompt_progress", None)
        usage = _add_usage(usage, event.pop("usage", None))
        answer |= event
    answer["object"] = str(answer.get("object", "")).removesuffix(".chunk")
    answer["choices"] = [choices[index] for index in sorted(choices)]
    if usage is not None:
        answer["usage"] = usage
    return 200, msgspec.json.encode(answer)


def _add_choice(whole: dict[str, Any], piece: dict[str, Any]) -> None:
    if "delta" in piece:
        _add_delta(whole.setdefault("message", {"role": "assistant", "content": ""}), piece["delta"])
    else:
        whole["text"] = whole.get("text", "") + piece.get("text", "")
    whole["finish_reason"] = piece.get("finish_reason") or whole.get("finish_reason")
    if piece.get("logprobs"):
        whole.setdefault("logprobs", {"content": []})["content"] += piece["logprobs"]["content"]


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in _FOLDED_TEXTS:
        if delta.get(name):
            message[name] = message.get(name, "") + delta[name]
    for call in delta.get("tool_calls") or ():
        calls: list[dict[str, Any]] = message.setdefault("tool_calls", [])
        while len(calls) <= call["index"]:
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        whole = calls[call["index"]]
        whole["id"] = call.get("id") or whole["id"]
        for part, text in call.get("function", {}).items():
            whole["function"][part] += text or ""


def _add_usage(whole: dict[str, Any] | None, piece: dict[str, Any] | None) -> dict[str, Any] | None:
    """The engine tells the usage of each choice by itself: the prompt counts once, what was generated adds up."""
    if whole is None or piece is None:
        return whole or piece
    generated = whole["completion_tokens"] + piece["completion_tokens"]
    return whole | {"completion_tokens": generated, "total_tokens": whole["prompt_tokens"] + generated}
