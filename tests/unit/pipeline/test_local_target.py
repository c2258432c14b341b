"""Requests to a local engine, a scripted server in its place: what is refused, what is sent, what comes of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.engines import SHARED_VARIABLE
from tests.fakes.gateway import CHAT, HELLO, RunningGateway, chat_body, running_gateway
from tests.fakes.openai_answers import DONE, delta, good_stream, payloads, stream, text_of, usage_chunk, whole
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer

COMPLETIONS = "/v1/completions"
EMBEDDINGS = "/v1/embeddings"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


class Local:
    """A gateway in front of an engine that another process owns, and what that engine got."""

    def __init__(self, engine: ScriptedServer, gateway: RunningGateway, state_file: Path) -> None:
        self.engine = engine
        self.gateway = gateway
        self._state_file = state_file

    def tell(self, state: str, error: str = "", supports_tools: bool | None = None) -> None:
        self._state_file.write_text(json.dumps([state, error, supports_tools]))

    @property
    def sent(self) -> dict[str, Any]:
        """The only request the engine got."""
        (request,) = self.engine.requests
        body: dict[str, Any] = json.loads(request.body)
        return body

    async def refusal(self, path: str, body: dict[str, Any] | bytes) -> dict[str, Any]:
        """The error of a request that is refused as the client's fault, before the engine hears of it."""
        answer = await self.gateway.post(path, body)
        assert answer.status == 400, (body, answer.body)
        assert not self.engine.requests, body
        error: dict[str, Any] = json.loads(answer.body)["error"]
        assert error["type"] == "invalid_request_error"
        return error


def answering(request: RecordedRequest) -> Script:
    return good_stream() if json.loads(request.body).get("stream") else [whole()]


@contextlib.asynccontextmanager
async def local_gateway(
    folder: Path,
    script: Script | Callable[[RecordedRequest], Script] = answering,
    *,
    supports_tools: bool | None = False,
    **provider: Any,
) -> AsyncIterator[Local]:
    path = folder / "engine.sock"
    weights = folder / "own.gguf"
    weights.write_bytes(b"GGUF")
    settings = {
        "providers": {"local": {"type": "local", "model_path": str(weights), **provider}},
        "models": {"m": {"targets": [{"provider": "local"}]}},
    }
    shared = json.dumps({"local": ["own", {"socket_path": str(path), "control": str(folder / "engine")}, 2]})
    state_file = path.with_suffix(".state")
    state_file.write_text(json.dumps(["ready", "", supports_tools]))
    async with (
        ScriptedServer(script, unix_path=str(path)) as engine,
        running_gateway(settings, environ={SHARED_VARIABLE: shared}) as gateway,
    ):
        yield Local(engine, gateway, state_file)


def said(*contents: Any, role: str = "user") -> dict[str, Any]:
    return chat_body(messages=[{"role": role, "content": content} for content in contents])


def text(**body: Any) -> dict[str, Any]:
    return {"model": "m", "prompt": "The sea", **body}


MISREAD = [
    (CHAT, chat_body(messages=[{"role": "wizard", "content": "x"}]), "messages[0].role"),
    (CHAT, chat_body(messages=[{"content": "x"}]), "messages[0].role"),
    (CHAT, chat_body(messages=[HELLO, "x"]), "messages[1]"),
    (CHAT, chat_body(messages=[{"role": "user"}]), "messages[0].content"),
    (CHAT, said(None), "messages[0].content"),
    (CHAT, said(None, role="system"), "messages[0].content"),
    (CHAT, said(None, role="assistant"), "messages[0].content"),
    (CHAT, said(5), "messages[0].content"),
    (CHAT, said({}), "messages[0].content"),
    (CHAT, said("x", []), "messages[1].content"),
    (CHAT, said([5]), "messages[0].content[0]"),
    (CHAT, said([{"type": "text"}]), "messages[0].content[0]"),
    (CHAT, chat_body(response_format={"type": "yaml"}), "response_format.type"),
    (CHAT, chat_body(response_format={}), "response_format.type"),
    (
        CHAT,
        chat_body(response_format={"type": "json_schema", "json_schema": {"name": "x"}}),
        "response_format.json_schema.schema",
    ),
    (CHAT, chat_body(top_logprobs=2, logprobs=False), "top_logprobs"),
    (CHAT, chat_body(tool_choice="required"), "tool_choice"),
    (COMPLETIONS, text(prompt=""), "prompt"),
    (COMPLETIONS, text(prompt=[""]), "prompt"),
    (COMPLETIONS, text(max_tokens=0), "max_tokens"),
]
LACKING = [
    (CHAT, said([{"type": "text", "text": "What is it?"}, IMAGE]), "messages[0].content[1]"),
    (CHAT, said([{"type": "input_audio", "input_audio": {}}]), "messages[0].content[0]"),
    (CHAT, said([{"type": "file", "file": {}}]), "messages[0].content[0]"),
    (CHAT, said([{"type": "hologram"}]), "messages[0].content[0]"),
    (COMPLETIONS, text(prompt=["a", "b"]), "prompt"),
    (COMPLETIONS, text(prompt=[[1, 2], [3]]), "prompt"),
    (COMPLETIONS, text(logprobs=1), "logprobs"),
    (COMPLETIONS, text(echo=True), "echo"),
    (COMPLETIONS, text(suffix="end"), "suffix"),
    (COMPLETIONS, text(best_of=2), "best_of"),
    (EMBEDDINGS, {"model": "m", "input": "a"}, "model"),
]


async def test_what_the_engine_would_misread_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async with local_gateway(tmp_path) as local:
        for path, body, param in MISREAD:
            error = await local.refusal(path, body)
            assert (error["param"], error["code"]) == (param, "invalid_value"), error


async def test_what_the_engine_lacks_is_refused_by_name(tmp_path: Path) -> None:
    async with local_gateway(tmp_path, slots=2) as local:
        for path, body, param in LACKING:
            error = await local.refusal(path, body)
            assert (error["param"], error["code"]) == (param, "unsupported_parameter"), error


@pytest.mark.parametrize(
    "messages",
    [
        b'[{"role": "user", "content": "a", "content": "b"}]',
        b'[{"role": "user", "role": "system", "content": "a"}]',
        b'[{"role": "user", "content": [{"type": "text", "text": "a", "t\\u0065xt": "b"}]}]',
    ],
)
async def test_a_message_that_two_readers_could_understand_differently_is_refused(
    tmp_path: Path, messages: bytes
) -> None:
    async with local_gateway(tmp_path) as local:
        error = await local.refusal(CHAT, b'{"model": "m", "messages": %b}' % messages)

    assert (error["param"], error["code"]) == ("messages", "invalid_json")
    assert "twice" in error["message"]


@pytest.mark.parametrize(
    "body",
    [
        chat_body(tools=[], tool_choice="auto"),
        chat_body(tools=None, tool_choice=None),
        chat_body(tools=[TOOL], tool_choice="none"),
        chat_body(tool_choice="none", tools=[TOOL]),
        said([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        chat_body(messages=[{"role": "assistant", "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": "5"}]),
        chat_body(messages=[{"role": "assistant", "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": None}]),
        chat_body(response_format={"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}),
        chat_body(response_format=None, logprobs=False, top_logprobs=0),
    ],
)
async def test_what_asks_for_nothing_the_engine_lacks_is_sent(tmp_path: Path, body: dict[str, Any]) -> None:
    async with local_gateway(tmp_path) as local:
        answer = await local.gateway.post(CHAT, body)

        assert answer.status == 200, answer.body
        assert not local.sent.get("tools")
        assert "top_logprobs" not in local.sent


async def test_tools_go_to_a_model_whose_template_has_them(tmp_path: Path) -> None:
    async with local_gateway(tmp_path, supports_tools=True) as local:
        assert (await local.gateway.chat(tools=[TOOL], tool_choice="auto")).status == 200

        assert local.sent["tools"] == [TOOL]


async def test_tools_are_not_risked_while_the_engine_has_not_told_about_them(tmp_path: Path) -> None:
    async with local_gateway(tmp_path, supports_tools=None) as local:
        answer = await local.gateway.chat(tools=[TOOL])

        assert answer.status == 503
        assert "ready" in json.loads(answer.body)["error"]["message"]
        assert not local.engine.requests

        local.tell("ready", supports_tools=True)
        assert (await local.gateway.chat(tools=[TOOL])).status == 200


async def test_the_refusal_of_embeddings_tells_what_helps(tmp_path: Path) -> None:
    async with local_gateway(tmp_path) as local:
        embeddings = await local.refusal(EMBEDDINGS, {"model": "m", "input": "a"})

    assert "`embeddings: true`" in embeddings["message"]


@pytest.mark.parametrize("asked", [{}, {"top_logprobs": 0}, {"top_logprobs": None}])
async def test_log_probabilities_without_alternatives_are_had_by_asking_for_one(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    async with local_gateway(tmp_path) as local:
        await local.gateway.chat(logprobs=True, **asked)

        assert local.sent["top_logprobs"] == 1


def progress(processed: int, index: int = 0) -> bytes:
    """What the engine sends after each batch of a prompt, as it was seen."""
    report = delta(role="assistant", content=None, index=index)
    return report.replace(b'"choices"', b'"prompt_progress":{"total":99,"processed":%d},"choices"' % processed)


async def test_reports_of_progress_are_asked_for_and_kept_from_the_client(tmp_path: Path) -> None:
    events = [progress(0), progress(64), delta(content='"prompt_progress"'), delta("stop"), usage_chunk(), DONE]
    async with local_gateway(tmp_path, stream(*events)) as local:
        answer = await local.gateway.chat(stream=True)

        assert local.sent["return_progress"] is True
    assert text_of(answer.body) == '"prompt_progress"'
    assert b'"prompt_progress":' not in answer.body


def usage(completion: int) -> dict[str, int]:
    return {"prompt_tokens": 7, "completion_tokens": completion, "total_tokens": 7 + completion}


TWO_CHOICES = stream(
    delta(content="Hel"),
    delta(content="By", index=1),
    delta(content="lo"),
    delta("stop"),
    usage_chunk(usage(2)),
    delta(content="e", index=1),
    delta("stop", index=1),
    usage_chunk(usage(5)),
    DONE,
)


def usages(answer: Answer) -> list[Any]:
    return [one["usage"] for one in payloads(answer.body) if isinstance(one, dict) and one.get("usage")]


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_usages_of_two_choices_add_up_but_for_their_common_prompt(tmp_path: Path, streamed: bool) -> None:
    async with local_gateway(tmp_path, TWO_CHOICES) as local:
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        answer = await local.gateway.chat(n=2, **options)
        row = await local.gateway.row()

    told = usages(answer) if streamed else [json.loads(answer.body)["usage"]]
    assert told == [{"prompt_tokens": 7, "completion_tokens": 7, "total_tokens": 14}]
    assert (row["prompt_tokens"], row["completion_tokens"]) == (7, 7)


async def test_clients_do_not_learn_the_paths_of_an_engine_that_is_down(tmp_path: Path) -> None:
    async with local_gateway(tmp_path) as local:
        local.tell("failed", "no model file at /home/operator/secret.gguf")
        answer = await local.gateway.chat()

    assert answer.status == 503
    assert b"not ready" in answer.body
    assert b"operator/" not in answer.body
