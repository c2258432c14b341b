"""What tests of emulated tools share: targets without them, and what a model writes in their place."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.raw_client import Answer
from tests.fakes.shapes import (
    said,
)

NO_TOOLS = {"params": {"tools": {"support": "rejected", "patch": "emulate_tools"}}}
NOT_FORCED = {
    "params": {"tool_choice": {"support": "conditional", "values": ["none", "auto"], "patch": "emulate_forced_tool"}}
}
BY_NAME = {"type": "function", "function": {"name": "look"}}
HERE = {"place": "here"}
CALLING = said(json.dumps({"tool_calls": [{"name": "look", "arguments": HERE}]}))
SPEAKING = said('{"answer": "Nothing to see."}')


def schema_of(body: dict[str, Any]) -> Any:
    return body["response_format"]["json_schema"]["schema"]


def finish_of(answer: Answer) -> str:
    reason: str = answer.json["choices"][0]["finish_reason"]
    return reason
