"""Refusals as engines and providers word them, each known for what it is."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.error_body import ErrorFields
from adapters.failures import from_fields
from adapters.types import FailureKind as Kind


def kind(status: int | None, message: str = "", **fields: Any) -> Kind:
    return from_fields("acme", ErrorFields(message, **fields), status, str).kind


@pytest.mark.parametrize(
    ("status", "message"),
    [
        # vLLM
        (400, "This model's maximum context length is 4096 tokens. However, your prompt contains 5000 input tokens"),
        (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
        (400, "max_tokens=9000 cannot be greater than max_model_len=8192"),
        # SGLang
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        (400, "Requested token count exceeds the model's maximum context length of 8192 tokens."),
        # llama.cpp, and its Python bindings
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "request (5000 tokens) exceeds the available context size (4096 tokens)"),
        (500, "Requested tokens (5000) exceed context window of 4096"),
        # TGI, and Together, which says it with 403 too
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 and 100"),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000"),
        (403, "`inputs` tokens + `max_new_tokens` must be <= 8193"),
        # TensorRT-LLM
        (400, "The sum of prompt length (9000.0) and max_tokens (10) should not exceed max_seq_len (8192)"),
        (500, "Encountered an error when fetching new request: Prompt length (200) exceeds maximum input length (100)"),
        (400, "Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)"),
        # LM Studio
        (400, "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with "
              "context length of only 8192 tokens, which is not enough."),
        # LocalAI passes on what its backend said
        (500, "rpc error: the input length exceeds the context length"),
        # MLC LLM
        (400, "Request prompt has 9000 tokens in total, larger than the model input length limit 8192."),
        # Hosted
        (400, "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000"),
        (400, "The prompt is too long: 12000, model maximum context length: 8191"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (400, "Your input exceeds the context window of this model."),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1000000)."),
        (413, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
        (None, "This model's maximum context length is 4096 tokens."),
        (400, "Range of input length should be [1, 30720]"),  # anomalyco/opencode#45834
        # earendil-works/pi#4943
        (400, "Input length 877338 exceeds the maximum allowed input length of 639968 tokens"),
        (400, "Input length (265330) exceeds model's maximum context length (262144)."),  # earendil-works/pi#5677
        (400, "Prompt exceeds max length"),  # mangowhoiscloud/geode#668
        (400, "Prompt \u8d85\u957f"),  # open-octo/octo-agent#2124, as the next
        (400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)"),
        (400, "prompt token count of 125516 exceeds the limit of 64000"),  # NousResearch/hermes-agent#109698
        (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
        (400, "Total tokens of image and text exceed max message tokens"),
        (400, "Prompt too long: 5152 tokens exceeds max_seq_len 2048"),  # 0xBakeer/inference-atlas#186
    ],
)  # fmt: skip
def test_an_overflow_is_known_by_its_wording(status: int | None, message: str) -> None:
    assert kind(status, message) is Kind.CONTEXT_LENGTH


@pytest.mark.parametrize("status", [400, 403, 413, 422, 429, 500, 503, None])
def test_an_overflow_is_known_by_its_code_whatever_the_status(status: int | None) -> None:
    assert kind(status, "m", code="context_length_exceeded") is Kind.CONTEXT_LENGTH
    assert kind(status, "m", type="exceed_context_size_error") is Kind.CONTEXT_LENGTH


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Tokens per minute limit exceeded - too many tokens processed."),
        (503, "the context window service is down"),
        (401, "prompt is too long"),
        (400, "the temperature is too high"),
        (400, "in the context of this request the tool is wrong"),
        (400, "Input should be less than or equal to 2: temperature exceeds maximum of 2"),
        (429, "Request exceeded token limit: 60000 tokens per minute"),
    ],
)
def test_not_everything_about_lengths_is_an_overflow(status: int, message: str) -> None:
    assert kind(status, message) is not Kind.CONTEXT_LENGTH


@pytest.mark.parametrize("status", [400, 404, 422, 500, 502, 503])
@pytest.mark.parametrize(
    "message",
    [
        "model name=qwen failed to load",
        "Failed to load model \"qwen\": insufficient memory",
        "error loading model: unsupported tensor type",
        "unable to load model: /models/x.gguf",
        "model requires more system memory (5.6 GiB) than is available (3.1 GiB)",
        "No models loaded. Please load a model in the developer page.",
        "The model could not be loaded",
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_loaded_is_known_whatever_the_status(status: int, message: str) -> None:
    assert kind(status, message, type="server_error") is Kind.NOT_LOADED


@pytest.mark.parametrize("status", [400, 404, 500, 503])
@pytest.mark.parametrize(
    "message",
    ["Loading model", "Model qwen is currently loading", "the model is still being loaded", "Model 'm' is not ready"],
)
def test_a_model_that_is_being_loaded_is_waited_for_whatever_the_status(status: int, message: str) -> None:
    assert kind(status, message) is Kind.OVERLOADED


@pytest.mark.parametrize("status", [400, 404, 422, 500, 503])
@pytest.mark.parametrize(
    "message",
    [
        "model 'x' not found",
        "model \"x:7b\" not found, try pulling it first",
        "The model `org/x` does not exist.",
        "Unknown model: x",
        "Model not found, inaccessible, and/or not deployed",
        "LoRA adapter 'acme' is not loaded",
    ],
)  # fmt: skip
def test_a_model_that_is_not_there_is_known_whatever_the_status(status: int, message: str) -> None:
    assert kind(status, message) is Kind.NOT_FOUND


@pytest.mark.parametrize(
    "message",
    [
        "the role 'developer' is not supported",
        "'image_url' is not supported here",
        "the option was flagged as deprecated",
        "the model's tools are not ready",
        "the model is loaded without a vision part",
    ],
)
def test_other_things_that_are_wrong_stay_the_clients_own(message: str) -> None:
    assert kind(400, message) is Kind.BAD_REQUEST


def test_other_things_that_are_not_found_are_the_clients_own() -> None:
    assert kind(400, "tool_call_id 'model_1' not found in the model's earlier turn") is Kind.BAD_REQUEST


@pytest.mark.parametrize(
    ("status", "fields", "expected"),
    [
        (400, {"code": "content_filter"}, Kind.CONTENT_FILTER),
        (400, {"message": "The response was filtered due to the content management policy"}, Kind.CONTENT_FILTER),
        (
            403,
            {"message": "Your input was flagged for violence and the model requires moderation"},
            Kind.CONTENT_FILTER,
        ),
        (400, {"message": "flagged by our safety system"}, Kind.CONTENT_FILTER),
        (400, {"code": "json_validate_failed"}, Kind.INVALID_OUTPUT),
        (400, {"code": "tool_use_failed"}, Kind.INVALID_OUTPUT),
        (498, {"code": "capacity_exceeded"}, Kind.OVERLOADED),
        (429, {"type": "overloaded"}, Kind.OVERLOADED),
        (529, {"type": "overloaded_error"}, Kind.OVERLOADED),
        (413, {"code": "rate_limit_exceeded", "type": "tokens"}, Kind.RATE_LIMITED),
        (400, {"message": "API key not valid. Please pass a valid API key."}, Kind.AUTH),
        (400, {"code": "invalid_api_key"}, Kind.AUTH),
        (429, {"code": "insufficient_quota"}, Kind.PAYMENT),
        (403, {"code": "model_not_found"}, Kind.NOT_FOUND),
    ],
)
def test_codes_say_more_than_a_status(status: int, fields: dict[str, str], expected: Kind) -> None:
    assert kind(status, **fields) is expected


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("property 'logit_bias' is unsupported", "logit_bias"),
        ("'messages.0' : the following must be satisfied[('messages.0' : property 'name' is unsupported)]", "name"),
        ("1 request validation errors: Extra inputs are not permitted, field: 'store', value: True", "store"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
        ("Unrecognized request argument supplied: top_k", "top_k"),
        ("Extra inputs are not permitted", None),
        ("`logprobs` is not supported for this model", "logprobs"),
        ("reasoning_effort is not supported with this model", "reasoning_effort"),
    ],
)  # fmt: skip
def test_a_parameter_that_is_not_known_there_is_named(message: str, param: str | None) -> None:
    failure = from_fields("acme", ErrorFields(message, "invalid_request_error"), 400, str)

    assert (failure.kind, failure.param) == (Kind.UNSUPPORTED_PARAMETER, param)
