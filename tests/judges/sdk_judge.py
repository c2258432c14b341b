"""Runs in a judge's own environment: puts a provider's SDK through its paces and tells as JSON what it read."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

SAY = [{"role": "user", "content": "Say exactly: the sea is calm"}]
CALL = [{"role": "user", "content": 'Call tool get_weather with {"city": "Paris"}'}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Judge:
    """One SDK, pointed at one server."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self.orders = orders
        self.module = importlib.import_module(orders["module"])
        self.client = self.made(orders["key"])
        self.model = orders["model"]

    def made(self, key: str) -> Any:
        make = getattr(self.module, self.orders["client"])
        return make(api_key=key, base_url=self.orders["base_url"], max_retries=0, timeout=20.0)

    def create(self, client: Any = None, **body: Any) -> Any:
        return (client or self.client).chat.completions.create(**{"model": self.model, "messages": SAY, **body})

    def chat(self) -> Any:
        answer = self.create()
        choice = answer.choices[0]
        usage = answer.usage
        return {
            "kind": type(answer).__name__,
            "text": choice.message.content,
            "role": choice.message.role,
            "finish": choice.finish_reason,
            "adds_up": usage.total_tokens == usage.prompt_tokens + usage.completion_tokens,
            "model": answer.model,
        }

    def stream(self) -> Any:
        chunks = list(self.create(stream=True))
        choices = [choice for chunk in chunks for choice in chunk.choices or ()]
        reasons = [choice.finish_reason for choice in choices if choice.finish_reason]
        return {"text": "".join(choice.delta.content or "" for choice in choices), "finish": reasons}

    def tools(self) -> Any:
        choice = self.create(messages=CALL, tools=[TOOL]).choices[0]
        calls = choice.message.tool_calls or []
        return {
            "calls": [[call.function.name, json.loads(call.function.arguments)] for call in calls],
            "finish": choice.finish_reason,
        }

    def tool_stream(self) -> Any:
        name, arguments = "", ""
        for chunk in self.create(messages=CALL, tools=[TOOL], stream=True):
            for choice in chunk.choices or ():
                for call in choice.delta.tool_calls or ():
                    name += (call.function.name or "") if call.function else ""
                    arguments += (call.function.arguments or "") if call.function else ""
        return {"calls": [[name, json.loads(arguments)]]}

    def models(self) -> Any:
        return [model.id for model in self.client.models.list().data]

    def embeddings(self) -> Any:
        answer = self.client.embeddings.create(model=self.orders["embedder"], input=["the sea", "the sky"])
        return [len(row.embedding) for row in answer.data]

    def refused_value(self) -> Any:
        return self.create(temperature="hot")

    def refused_key(self) -> Any:
        return self.create(self.made("wrong-key-0123456789"))

    def unknown_model(self) -> Any:
        return self.create(model="no-such-model")

    def busy(self) -> Any:
        return self.create(model=self.orders["busy"])

    def broken(self) -> Any:
        return self.create(model=self.orders["broken"])

    def broken_stream(self) -> Any:
        chunks = list(self.create(model=self.orders["breaks_off"], stream=True))
        return [choice.finish_reason for chunk in chunks for choice in chunk.choices or () if choice.finish_reason]

    def tried(self, case: Callable[[], Any]) -> Any:
        """What a case gives, or the error it raises, with the classes that a program would catch."""
        try:
            return {"answer": case()}
        except Exception as error:  # noqa: BLE001  whatever it is, it is the judgement
            families = [one.__name__ for one in type(error).__mro__ if one is not object]
            status = getattr(error, "status_code", None)
            return {"error": families, "status": status, "message": str(error)[:500]}


def main() -> None:
    orders = json.load(sys.stdin)
    judge = Judge(orders)
    found = {name: judge.tried(getattr(judge, name)) for name in orders["cases"]}
    sys.stdout.write(json.dumps(found, default=str) + "\n")


main()
