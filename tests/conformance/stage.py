"""One model whose provider follows a script, and what a client hears of it through the gateway."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.simulator.envelope import error_body
from adapters.simulator.refusal import RefusedError
from adapters.simulator.wire import Answer as Played
from adapters.simulator.wire import one_piece
from adapters.spec import ErrorCaseSpec, ParamSpec, ProviderSpec
from adapters.target import Target
from adapters.vocabulary import Patch
from tests.conformance.rehearsal import Rehearsal, Script, Seen, has_tools
from tests.conformance.said import said
from tests.conformance.uses import say
from tests.fakes.raw_client import Answer


@dataclass(frozen=True, slots=True)
class Stage:
    """One model, asked whole or streamed, while its provider follows a script."""

    rehearsed: Rehearsal
    model: str
    stream: bool

    @property
    def target(self) -> Target:
        return self.rehearsed.backend(self.model).target

    @property
    def spec(self) -> ProviderSpec:
        return self.target.spec

    @property
    def canonical(self) -> str:
        return self.spec.canonical(self.target.model)

    async def ask(self, script: Script, text: str = "Hi.", **members: Any) -> tuple[Answer, Seen]:
        """The answer of the gateway, and what the provider saw."""
        body = {"model": self.model, "messages": [say(text)], **members}
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        self.rehearsed.look(self.target.provider)
        self.rehearsed.upstream.script = script
        try:
            answer = await self.rehearsed.post("/v1/chat/completions", body)
        finally:
            self.rehearsed.upstream.script = None
        return answer, self.rehearsed.look(self.target.provider)

    async def hear(self, asked: Mapping[str, Any], *texts: str, **told: Any) -> Answer:
        """The gateway's answer to a request with the members *asked*, to which the provider has said so."""
        answer, _ = await self.ask(lambda body, _: said(body, *texts, **told), **asked)
        return answer

    def param(self, name: str) -> ParamSpec | None:
        return self.spec.params.get(name)

    def has_tools(self) -> bool:
        """Whether tools are sent as they are."""
        facts = self.param("tools")
        return has_tools(self.target) is not False and facts is not None and facts.held_by(self.canonical)

    def refuses(self, refusal: RefusedError) -> Played:
        """A refusal in the provider's own shape."""
        return one_piece(refusal.status, json_bytes(error_body(self.spec.errors.envelope, refusal)), {})

    def cases(self, patch: Patch) -> list[ErrorCaseSpec]:
        return [case for case in self.spec.errors.cases if case.patch is patch]


Habit = Callable[[Stage], Awaitable[None]]


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def called_names(choice: Mapping[str, Any]) -> list[str]:
    """The names of the tools that a choice calls."""
    return [call["function"]["name"] for call in choice["message"].get("tool_calls") or ()]
