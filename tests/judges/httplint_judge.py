"""Runs in a judge's own environment: lints HTTP messages and tells as JSON what is bad about each."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

lint: Any = importlib.import_module("httplint")
levels: Any = importlib.import_module("httplint.note").levels


def notes_on(message: dict[str, Any]) -> list[str]:
    """What httplint calls bad, or warns of, in a request or in the answer to one."""
    request = lint.HttpRequestLinter()
    request.process_request_topline(
        message["method"].encode(), f"http://gateway.test{message['target']}".encode(), b"HTTP/1.1"
    )
    if "status" not in message:
        linted = request
    else:
        linted = lint.HttpResponseLinter(related=request)
        linted.process_response_topline(b"HTTP/1.1", str(message["status"]).encode(), message["phrase"].encode())
    linted.process_headers([(name.encode("latin-1"), value.encode("latin-1")) for name, value in message["headers"]])
    if message["method"] != "HEAD":  # whose answers have the length of a body that is not there
        linted.feed_content(message["body"].encode())
        linted.finish_content(True)
    found = [note for note in linted.notes if note.level in (levels.BAD, levels.WARN)]
    return sorted({f"{note.level.value} {type(note).__name__}: {note.subject}: {note.summary}" for note in found})


if __name__ == "__main__":
    orders = json.load(sys.stdin)
    print(json.dumps([notes_on(message) for message in orders["messages"]]))
