"""A stock llama-server by URL: it was started by somebody who knows its model, so less is refused than for our own."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapters.adapter import Adapter, refuse_operation
from adapters.errors import ProviderError
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import FailureKind, Operation

TARGET = Target("box/m", "box", "m", load_spec("llama_cpp_server"))
HELLO = {"role": "user", "content": "Hi"}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def prepared(operation: Operation = Operation.CHAT, stream: bool = False, **body: Any) -> dict[str, Any]:
    """What is sent for *body*."""
    if operation is Operation.CHAT:
        body = {"messages": [HELLO], **body}
    raw = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in body.items()}
    sent: dict[str, Any] = json.loads(Adapter(TARGET).prepare(raw, operation, stream).body)
    return sent


def test_tools_and_images_are_its_own_business() -> None:
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]

    sent = prepared(messages=image, tools=TOOLS, tool_choice="required")

    assert (sent["messages"], sent["tools"], sent["tool_choice"]) == (image, TOOLS, "required")


def test_a_streamed_request_asks_for_reports_of_progress_and_a_plain_one_does_not() -> None:
    assert prepared(stream=True)["return_progress"] is True
    assert "return_progress" not in prepared()


@pytest.mark.parametrize(("given", "sent"), [(None, 1), (0, 1), (5, 5)])
def test_log_probabilities_come_with_at_least_one_alternative(given: int | None, sent: int) -> None:
    assert prepared(logprobs=True, top_logprobs=given)["top_logprobs"] == sent


@pytest.mark.parametrize("prompt", ["The sea", ["The sea"], [1, 2], [[1, 2]]])
def test_one_prompt_is_sent_as_it_came(prompt: Any) -> None:
    assert prepared(Operation.COMPLETIONS, prompt=prompt)["prompt"] == prompt


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": "a", "echo": True}, "echo"),
        ({"prompt": "a", "n": 2, "best_of": 3}, "best_of"),
    ],
)
def test_what_it_ignores_in_completions_is_left_to_another_target(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ProviderError) as refusal:
        prepared(Operation.COMPLETIONS, **body)

    assert (refusal.value.kind, refusal.value.param) == (FailureKind.UNSUPPORTED_PARAMETER, param)
    assert not refusal.value.sent


def test_a_number_that_no_reader_could_hold_is_refused() -> None:
    raw = {"messages": msgspec.Raw(b'[{"role": "user", "content": "a", "x": %b}]' % (b"9" * 5000))}

    with pytest.raises(ProviderError) as refusal:
        Adapter(TARGET).prepare(raw, Operation.CHAT, False)

    assert refusal.value.kind is FailureKind.BAD_REQUEST


def test_an_operation_that_is_not_offered_is_refused_with_what_helps() -> None:
    bundled = Target("local/m", "local", "m", load_spec("local"))

    assert "`embeddings: true`" in refuse_operation(bundled, Operation.EMBEDDINGS).message
    assert refuse_operation(TARGET, Operation.EMBEDDINGS).message == "box does not offer embeddings for this model."
