"""Whole answers with calls, and their only choice once they are repaired."""

from __future__ import annotations

from typing import Any

from tests.fakes.repaired import repaired_whole

WRITTEN = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'


def tool(arguments: Any = "{}", name: str = "get_time", **members: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}, **members}


def choice_of(answer: Any, *options: Any, **more: Any) -> dict[str, Any]:
    (choice,) = repaired_whole(answer, *options, **more)["choices"]
    found: dict[str, Any] = choice
    return found
