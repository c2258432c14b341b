"""Runs in an environment with litellm: makes one call a line of input, and tells a line what came of it.

The first line says where to; each further one is the body of a chat, as a client of OpenAI's would send it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any


def called(litellm: Any, where: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
    """The chunks of the answer, or its only one; else the class of the error."""
    try:
        answer = litellm.completion(
            **{**body, "model": where["model"]},
            api_base=where["api_base"],
            api_key=where["api_key"],
            num_retries=0,
            max_retries=0,
            timeout=20,
        )
        chunks = list(answer) if body.get("stream") else [answer]
        return {"chunks": [chunk.model_dump() for chunk in chunks]}
    except Exception as error:  # noqa: BLE001  whatever it is, it is the judgement
        return {"error": type(error).__name__, "message": str(error)[:300]}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints where it likes
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    where = json.loads(sys.stdin.readline())
    for line in sys.stdin:
        answers.write(json.dumps(called(litellm, where, json.loads(line)), default=str) + "\n")
        answers.flush()


main()
