"""No provider is ever sent something that it rejects, whatever valid request a client makes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conformance.models import EVERY, MODELS
from tests.conformance.reading import read
from tests.conformance.rehearsal import Rehearsal, rehearsal
from tests.conformance.requests import chat_requests
from tests.fakes.raw_client import Answer

Ask = Callable[[str, Mapping[str, Any]], tuple[Answer, list[Any]]]
_CODES = ("unsupported_parameter", "invalid_value", "context_length_exceeded")
"""What a gateway may say of a request that no target can take."""
_SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
}


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Sends a request to a model, and tells what its provider refused."""
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        rehearsed: Rehearsal = runner.run(stack.enter_async_context(rehearsal(EVERY)))

        def send(model: str, body: Mapping[str, Any]) -> tuple[Answer, list[Any]]:
            provider = rehearsed.backend(model).target.provider
            answer = runner.run(rehearsed.post("/v1/chat/completions", {"model": model, **body}))
            return answer, rehearsed.look(provider).refusals

        yield send
        runner.run(stack.aclose())


def check(ask: Ask, model: str, request: Mapping[str, Any]) -> None:
    answer, refusals = ask(model, request)
    assert refusals == []
    if answer.status == 400:
        assert answer.error["code"] in _CODES, answer.body
        return
    assert answer.status == 200, answer.body
    heard = read(answer)
    assert "error" not in heard, heard
    wanted = request.get("n") or 1
    assert [choice["index"] for choice in heard["choices"]] == list(range(wanted))
    assert all(choice["finish_reason"] for choice in heard["choices"])


@settings(max_examples=120, **_SETTINGS)
@given(model=st.sampled_from(sorted(MODELS)), request=chat_requests())
def test_no_provider_is_sent_what_it_rejects(ask: Ask, model: str, request: dict[str, Any]) -> None:
    check(ask, model, request)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("thousand", range(20))
@settings(max_examples=1000, phases=[Phase.explicit, Phase.generate, Phase.shrink], database=None, **_SETTINGS)
@given(model=st.sampled_from(sorted(EVERY)), request=chat_requests())
def test_no_provider_is_sent_what_it_rejects_of_very_many(
    ask: Ask, thousand: int, model: str, request: dict[str, Any]
) -> None:
    """Twenty thousand in all; in parts, so that a busy machine has the time and several processes can share them."""
    check(ask, model, request)
