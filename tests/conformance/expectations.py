"""What is expected of a hosted provider by people who have never seen its provider file.

The files in ``expected`` are written from the types of each provider's own SDK and from what users have reported, so
that they can disagree with ``adapters/providers`` where the two have read the world differently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.conformance.reading import at, has, read
from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, event, stream, usage_chunk, words
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import RecordedRequest, Script, answer

DIRECTORY = Path(__file__).parent / "expected"
HELLO = {"role": "user", "content": "Say hello."}


class Upstream(msgspec.Struct, forbid_unknown_fields=True):
    """One answer of the provider: a text in its plainest form, or what it is told to say."""

    text: str | None = None
    body: Any = None
    events: list[Any] | None = None
    status: int = 200
    headers: dict[str, str] = {}

    def script(self, request: Mapping[str, Any]) -> Script:
        """What goes over the wire; a text takes the form that was asked for."""
        if self.events is not None:
            return stream(*(event(one) for one in self.events), DONE)
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        if self.text is None:
            return [answer(json.dumps(self.body).encode(), self.status, headers=headers)]
        if request.get("stream"):
            return stream(ROLE, *words(*self.text.split("|")), STOP, usage_chunk(), DONE)
        return [answer(json.dumps(completion(self.text.replace("|", ""))).encode(), headers=headers)]


class Takes(msgspec.Struct, forbid_unknown_fields=True):
    """The members the SDK's types know; whatever is sent may hold no other."""

    body: list[str]
    roles: dict[str, list[str]]
    call: list[str]
    tool: list[str]
    function: list[str]

    def check(self, body: Mapping[str, Any]) -> None:
        assert not body.keys() - {*self.body}, "a parameter the provider does not know"
        for message in body["messages"]:
            assert message["role"] in self.roles
            assert not message.keys() - {*self.roles[message["role"]]}, "a member no such message has"
            for call in message.get("tool_calls") or ():
                assert not call.keys() - {*self.call}
        for tool in body.get("tools") or ():
            assert not tool.keys() - {*self.tool}
            assert not tool.get("function", {}).keys() - {*self.function}


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """A request with what is expected to be sent for it, and an answer with what is expected to be told."""

    says: str
    source: str
    request: dict[str, Any] = {}
    endpoint: str = "chat/completions"
    model: str | None = None
    answers: list[Upstream] = []
    """In turn; the last one stands for all further ones. Without any, a plain text."""
    requests: int | None = 1
    """How many are sent; null: as many as it takes."""
    sends: dict[str, Any] = {}
    """Paths and values of the first request sent."""
    then: dict[str, Any] = {}
    """The same of the last one."""
    lacks: list[str] = []
    """Paths that no request has."""
    last_lacks: list[str] = []
    """Paths that the last request does not have."""
    within: dict[str, list[Any]] = {}
    """Paths and the values any request may have there; null: nothing at all."""
    at_most: dict[str, int] = {}
    """Paths of lists, and how long they may be."""
    alike: list[str] = []
    """Paths at which the same stands, or at all of them nothing."""
    adjusted: dict[str, str] = {}
    status: int = 200
    answer: dict[str, Any] = {}
    """Paths and values of what the client is told."""
    untold: list[str] = []
    """Paths at which the client finds nothing, or null."""

    def body(self) -> dict[str, Any]:
        """What the client sends."""
        needed: dict[str, Any] = {"messages": [HELLO]} if self.endpoint == "chat/completions" else {}
        return {"model": self.model or "m", **needed, **self.request}

    def script(self, request: RecordedRequest, number: int) -> Script:
        """The answer to the request of that number, counted from 0."""
        answers = self.answers or [Upstream(text="Hello| there.")]
        return answers[min(number, len(answers) - 1)].script(json.loads(request.body))

    def check(self, sent: Sequence[Any], answer: Answer, takes: Takes | None) -> None:
        """Compare with what was *sent* to the provider and answered to the client."""
        assert answer.status == self.status, answer.body
        assert self.requests in (None, len(sent)), sent
        for body in sent:
            self._check_body(body, takes)
        if sent:
            assert _found(sent[0], self.sends) == self.sends
            assert _found(sent[-1], self.then) == self.then
            assert [path for path in self.last_lacks if has(sent[-1], path)] == []
        told = dict(one.split("=") for one in answer.headers.get("x-gateway-adjusted", "").split(", ") if one)
        assert {name: told.get(name) for name in self.adjusted} == self.adjusted
        heard = read(answer)
        assert _found(heard, self.answer) == self.answer
        assert [path for path in self.untold if has(heard, path) and at(heard, path) is not None] == []

    def _check_body(self, body: Any, takes: Takes | None) -> None:
        if takes is not None and self.endpoint == "chat/completions":
            takes.check(body)
        assert [path for path in self.lacks if has(body, path)] == []
        for path, values in self.within.items():
            assert (at(body, path) if has(body, path) else None) in values
        for path, most in self.at_most.items():
            assert len(at(body, path)) <= most
        assert len({json.dumps(at(body, path)) if has(body, path) else None for path in self.alike}) < 2


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """What is expected of one provider."""

    provider: str
    sdk: str
    """The distribution and version whose types were read."""
    model: str
    cases: list[Case]
    takes: Takes | None = None

    @property
    def models(self) -> dict[str, str]:
        """The provider's models by the names clients call them."""
        return {"m": self.model, **{case.model: case.model for case in self.cases if case.model is not None}}


@cache
def expected_of(name: str) -> Expected:
    """What stands in the file of that name."""
    return msgspec.convert(yaml.safe_load((DIRECTORY / f"{name}.yaml").read_text(encoding="utf-8")), Expected)


def _found(body: Any, paths: Mapping[str, Any]) -> dict[str, Any]:
    return {path: at(body, path) if has(body, path) else "(nothing)" for path in paths}
