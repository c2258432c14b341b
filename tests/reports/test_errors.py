"""Reports about failures that are told as something else, or in another shape."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.fakes.gateway import PROVIDER_KEY, config, running_gateway
from tests.fakes.openai_answers import refusal, stream, words
from tests.fakes.scripted_server import Hang, Script
from tests.reports.field import heard, in_front_of, told

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
