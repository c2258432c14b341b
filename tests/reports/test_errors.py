"""Reports about failures: told as something else, told in another shape, or tried again in vain."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

import policies.retry
from tests.fakes.gateway import PROVIDER_KEY, config, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, good_stream, refusal, stream, words
from tests.fakes.scripted_server import Hang, Script, ScriptedServer, chunked_head
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import heard, in_front_of, saying


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies.retry, "BASE_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(policies.retry, "MAX_BACKOFF_SECONDS", 0.02)


def told(body: Any, status: int = 200, content_type: str = "application/json", headers: str = "") -> Script:
    """What an upstream answers, in whatever shape."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return [wire_answer(raw, status, content_type, headers)]


OVERFLOW = (
    "This model's maximum context length is 32768 tokens. However, you requested 33077 tokens (1077 in the messages, "
    "32000 in the completion). Please reduce the length of the messages or completion."
)
LLAMA_OVERFLOW = (
    "the request exceeds the available context size. try increasing the context size or enable context shift"
)
INVALID, SERVER = "invalid_request_error", "server_error"

TOLD: list[Any] = [
    # provider, what it answers, and what a client hears: status, code, and some of the message
    pytest.param("openai_compatible", told({"error": {"message": "Worker limit reached", "code": 502}}), 502, None,
                 "Worker limit reached", id="hugalafutro/model-hotel#821"),
    pytest.param("together", told({"error": {"message": "Invalid schema for response_format: missing "
                                                        "additionalProperties", "type": INVALID,
                                             "param": "response_format", "code": None}}, 400),
                 400, None, "missing additionalProperties", id="Wei-Shaw/sub2api#4176"),
    pytest.param("vllm", told({"object": "error", "message": "best_of must be 1 for this model",
                               "type": "BadRequestError", "param": None, "code": 400}, 400),
                 400, None, "best_of", id="vllm-project/vllm#6174"),
    pytest.param("vllm", told({"object": "error", "message": OVERFLOW, "type": "BadRequestError", "code": 400}, 400),
                 400, "context_length_exceeded", "32768", id="BerriAI/litellm#12680"),
    pytest.param("llama_cpp_server", told({"error": {"code": 400, "message": LLAMA_OVERFLOW,
                                                     "type": "exceed_context_size_error", "n_ctx": 4096}}, 400),
                 400, "context_length_exceeded", "context size", id="fedora-copr/logdetective-website#193"),
    pytest.param("llama_cpp_python", told({"error": {"message": "Requested tokens (2285) exceed context window of 2048",
                                                     "type": INVALID, "param": "messages", "code": None}}, 400),
                 400, "context_length_exceeded", "2048", id="fedora-copr/logdetective-website#193 (llama-cpp-python)"),
    pytest.param("lm_studio", told({"error": "The number of tokens to keep from the initial prompt is greater than the "
                                             "context length"}),
                 400, "context_length_exceeded", "context length", id="lmstudio-ai/lmstudio-bug-tracker#2322"),
    pytest.param("openai_compatible", told({"error": "Insufficient balance", "requiredBalance": 0.0035, "status": 402},
                                           402),
                 502, "upstream_payment", "", id="PsycherosAI/Psycheros#44"),
    pytest.param("openai_compatible", told({"detail": "Service is starting"}, 503), 503, None, "",
                 id="lm-sys/FastChat#1889 (detail)"),
    pytest.param("openai_compatible", told({"success": False, "result": None, "messages": [],
                                            "errors": [{"code": 7001, "message": "GET not supported"}]}, 405),
                 400, None, "GET not supported", id="jekalmin/extended_openai_conversation#228"),
    pytest.param("openai_compatible", told("upstream connect error", 503, "text/plain"), 503, None, "",
                 id="lm-sys/FastChat#1889 (plain text)"),
    pytest.param("openai_compatible", told("<html><title>502 Bad Gateway</title></html>", 502, "text/html"), 502, None,
                 "", id="yoheinakajima/babyagi#64"),
    pytest.param("openai_compatible", told("<html>Sign in</html>", 200, "text/html"), 502, None, "",
                 id="Significant-Gravitas/AutoGPT#341"),
    pytest.param("groq", told({"error": {"message": "Request too large for model `llama` on tokens per minute (TPM): "
                                                    "Limit 12000, Requested 14137", "type": "tokens",
                                         "code": "rate_limit_exceeded"}}, 413),
                 429, "rate_limit_exceeded", "Limit 12000", id="continuedev/continue#10218"),
    pytest.param("openai_compatible", told({"error": {"message": "slow down", "type": "requests", "code": None}}, 429),
                 429, None, "slow down", id="sourcegraph/sourcegraph-public-snapshot#52633"),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("provider", "script", "status", "code", "message"), TOLD)
async def test_a_failure_is_told_in_openais_shape_under_a_status_that_means_it(
    provider: str, script: Script, status: int, code: str | None, message: str, streamed: bool
) -> None:
    async with in_front_of(script, provider) as field:
        answer = await field.ask(stream=streamed)

    assert answer.status == status, answer.body
    error = answer.error
    assert message in error["message"]
    assert error["message"]
    assert error["type"] in (INVALID, SERVER, "rate_limit_error")
    assert isinstance(error["code"], str | None)
    assert code is None or error["code"] == code


async def test_a_providers_key_is_blotted_out_of_what_it_says() -> None:
    """BerriAI/litellm#20288"""
    script = [refusal(401, f"Incorrect API key provided: {PROVIDER_KEY}.", code="invalid_api_key")]
    async with in_front_of(script, "groq") as field:
        answer = await field.ask()

    assert answer.status == 502
    assert PROVIDER_KEY.encode() not in answer.body


async def test_a_port_where_nothing_listens_fails_fast_and_is_named() -> None:
    """anthony-chaudhary/fak#326"""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        async with running_gateway(config(free.getsockname()[1], retries={"attempts": 1})) as gateway:
            answer = await gateway.chat(timeout=3)

    assert answer.status in (502, 503)
    assert "p1" in answer.error["message"]


def silent(finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A whole answer without a word."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "", **message}, "finish_reason": finish}
    return {**completion(), "choices": [choice]}


FALLING: list[Any] = [
    pytest.param(told({"error": {"message": "ResourceExhausted", "code": 502}}), id="decolua/9router#3242"),
    pytest.param(told({**completion(), "choices": []}), id="ENTERPILOT/GoModel#947"),
    pytest.param(told({**completion(), "choices": None}), id="diegosouzapw/OmniRoute#3424"),
    pytest.param(told({**completion(), "choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}),
                 id="a choice without a message"),
    pytest.param(told(silent()), id="mnfst/llm-gateway#2709"),
    pytest.param(told(silent(content=None, tool_calls=[])), id="diegosouzapw/OmniRoute#7000"),
    pytest.param(stream(ROLE, STOP, DONE), id="BerriAI/litellm#14655, a stream"),
    pytest.param([refusal(529, "overloaded", type="overloaded_error")], id="openclaw/openclaw#69642"),
    pytest.param([refusal(402, "Insufficient credits")], id="a target that is out of credit"),
    pytest.param([refusal(404, "The model `up1` does not exist")], id="a target that lost its model"),
    pytest.param(told("", 200), id="an empty body"),
    pytest.param(told("", 204), id="no content"),
    pytest.param(told("", 302, headers="location: http://127.0.0.1:9/\r\n"), id="a redirect"),
    pytest.param([refusal(429, "rate limited")], id="BerriAI/litellm#20870"),
    pytest.param([refusal(500, "model name=qwen failed to load", type="server_error")],
                 id="NousResearch/hermes-agent#102044"),
    pytest.param([refusal(503, "down")], id="BerriAI/litellm#10317"),
    pytest.param(stream(b'data: {"error":{"message":"no capacity","type":"server_error","code":503}}\n\n'),
                 id="BerriAI/litellm#38610"),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("script", FALLING)
async def test_a_failure_before_any_content_leads_to_the_fallback(script: Script, streamed: bool) -> None:
    backup: Script = good_stream("from backup") if streamed else [saying({"content": "from backup"})]
    async with ScriptedServer(script) as first, ScriptedServer(backup) as second:
        settings = config(first, second, retries={"attempts": 2})
        settings["aliases"] = {"gpt-4o-mini": "m"}
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(model="gpt-4o-mini", stream=streamed, timeout=5)

        text = heard(answer).content if streamed else answer.json["choices"][0]["message"]["content"]
        assert text == "from backup"
        assert json.loads(second.requests[0].body)["model"] == "up2"


LAST_WORDS: list[Any] = [
    # no other target, a limit that was reached, a refusal by the filter, and one in words
    pytest.param(silent(), 1, "stop", id="alone"),
    pytest.param(silent("length"), 2, "length", id="all of it thought"),
    pytest.param(silent("content_filter"), 2, "content_filter", id="filtered"),
    pytest.param(silent(content=None, refusal="I cannot."), 2, "stop", id="refused"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("body", "targets", "reason"), LAST_WORDS)
async def test_an_answer_without_text_may_be_the_answer(
    body: dict[str, Any], targets: int, reason: str, streamed: bool
) -> None:
    """aj47/SpeakMCP#797: nothing more may be to be had."""
    async with ScriptedServer(told(body)) as first, ScriptedServer([saying({"content": "from backup"})]) as second:
        async with running_gateway(config(*(first, second)[:targets], retries={"attempts": 3})) as gateway:
            answer = await gateway.chat(stream=streamed)

        assert (len(first.requests), len(second.requests)) == (1, 0)
    assert answer.status == 200
    finish = heard(answer).finish[0] if streamed else answer.json["choices"][0]["finish_reason"]
    assert finish == reason


async def test_an_answer_without_a_word_is_paid_for_all_the_same() -> None:
    async with (
        ScriptedServer(told(silent())) as first,
        ScriptedServer([saying({"content": "from backup"})]) as second,
        running_gateway(config(first, second)) as gateway,
    ):
        await gateway.chat()
        row = await gateway.row()

    assert row["attempts"][0]["failure"] == "empty"
    assert row["cost_nusd"] > 0
    assert row["attempts"][0]["cost_nusd"] > 0


async def test_what_a_client_got_wrong_is_not_tried_again() -> None:
    """Wei-Shaw/sub2api#4176"""
    async with ScriptedServer([refusal(400, "missing additionalProperties")]) as server:
        async with running_gateway(config(server, retries={"attempts": 3})) as gateway:
            answer = await gateway.chat()

        assert (answer.status, len(server.requests)) == (400, 1)


async def test_two_retries_are_three_attempts() -> None:
    """BerriAI/litellm#7130"""
    async with ScriptedServer([refusal(500, "boom")]) as server:
        async with running_gateway(config(server, retries={"attempts": 3})) as gateway:
            answer = await gateway.chat()

        assert (answer.status, len(server.requests)) == (502, 3)


async def test_each_wait_is_the_one_that_the_latest_answer_asks_for() -> None:
    """BerriAI/litellm#20722"""

    def script(request: Any) -> Script:
        if request.number > 2:
            return [saying({"content": "hello"})]
        wait = "retry-after-ms: 20\r\n" if request.number == 1 else "retry-after-ms: 60\r\n"
        return [refusal(429, "slow", headers=wait)]

    async with ScriptedServer(script) as server:
        async with running_gateway(config(server, retries={"attempts": 3})) as gateway:
            begun = time.monotonic()
            answer = await gateway.chat()
            waited = time.monotonic() - begun

        assert (answer.status, len(server.requests)) == (200, 3)
        assert waited >= 0.08


async def test_a_fallback_whose_context_is_too_small_is_passed_over() -> None:
    """BerriAI/litellm#31557"""
    full = [refusal(400, "This model's maximum context length is 2048 tokens. However, you requested 4000 tokens.")]
    async with (
        ScriptedServer([refusal(429, "rate")]) as busy,
        ScriptedServer(full) as small,
        ScriptedServer([saying({"content": "from large"})]) as large,
    ):
        settings = config(busy, small, large, retries={"attempts": 3})
        settings["models"]["m"]["targets"][1]["context_window"] = 2048
        settings["models"]["m"]["targets"][2]["context_window"] = 131_072
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(messages=[{"role": "user", "content": "word " * 3500}])

    assert answer.json["choices"][0]["message"]["content"] == "from large"


async def test_a_target_that_says_nothing_is_given_up_for_the_fallback() -> None:
    """BerriAI/litellm#19909, BerriAI/litellm#38358"""
    async with ScriptedServer([chunked_head(), Hang()]) as mute, ScriptedServer(good_stream("from backup")) as second:
        settings = config(mute, second, retries={"attempts": 2}, timeouts={"first_event": "100ms"})
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(stream=True)

    assert heard(answer).content == "from backup"


async def test_a_target_that_says_nothing_alone_is_a_timeout() -> None:
    """BerriAI/litellm#38358"""
    async with in_front_of([Hang()], timeouts={"first_event": "100ms"}) as field:
        answer = await field.ask(stream=True)

    assert answer.status == 504
    assert answer.error["message"]


async def test_a_stream_that_falls_silent_ends_with_an_error() -> None:
    """2389-research/tracker#575"""
    silent = [*stream(*words("hel", "lo"), end=False), Hang()]
    async with in_front_of(silent, timeouts={"first_event": "2s", "stall": "100ms"}) as field:
        found = heard(await field.ask(stream=True))

    assert found.content == "hello"
    assert found.errors
    assert found.finish == {}
