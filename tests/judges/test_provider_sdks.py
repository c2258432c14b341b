"""The providers' own SDKs read what simulators and the gateway answer, and raise the errors their users catch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio

from adapters.registry import load_spec
from tests.fakes.gateway import KEY, running_gateway
from tests.fakes.simulated import simulated
from tests.judges.environments import ask, interpreter

pytestmark = [pytest.mark.long, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="module")]


@dataclass(frozen=True, slots=True)
class Sdk:
    """How one SDK is made, and what it adds to a base URL by itself."""

    provider: str
    module: str
    client: str
    prefix: str
    also: tuple[str, ...] = ()
    reads_errors_in_streams: bool = True


SDKS: Final = (
    Sdk("groq", "groq", "Groq", "/openai/v1", ("models",)),
    Sdk("cerebras", "cerebras.cloud.sdk", "Cerebras", "/v1", ("models",)),
    Sdk("together", "together", "Together", "/v1", ("embeddings",)),
    Sdk("fireworks", "fireworks", "Fireworks", "/v1", reads_errors_in_streams=False),
)
CASES: Final = (
    "chat", "stream", "tools", "tool_stream",
    "refused_value", "refused_key", "unknown_model", "busy", "broken", "broken_stream",
)  # fmt: skip
FAULTS: Final = {
    "busy": "simulate-rate_limit-1",
    "broken": "simulate-status-500",
    "breaks_off": "simulate-stream_error-2",
}
EMBEDDER: Final = "embedder"
CALLED: Final = [["get_weather", {"city": "Paris"}]]
Judgement = dict[str, Any]


async def judged(sdk: Sdk, python: Any, base_url: str, key: str, model: str, names: dict[str, str]) -> Judgement:
    orders = {
        "module": sdk.module,
        "client": sdk.client,
        "base_url": base_url,
        "key": key,
        "model": model,
        "embedder": EMBEDDER,
        "cases": [*CASES, *sdk.also],
        **names,
    }
    found: Judgement = await ask(python, "sdk_judge.py", orders)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SDKS, ids=lambda sdk: sdk.provider)
async def sdk(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Sdk, Any]]:
    assert request.config.cache is not None
    found: Sdk = request.param
    yield found, interpreter(found.provider, request.config.cache.mkdir("judges"))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["simulator", "gateway"])
async def found(request: pytest.FixtureRequest, sdk: tuple[Sdk, Any]) -> AsyncIterator[Judgement]:
    """What the SDK makes of everything, at a simulator of its provider or at a gateway in front of it."""
    one, python = sdk
    async with simulated(one.provider, models=(EMBEDDER,)) as running:
        origin = f"http://127.0.0.1:{running.port}"
        if request.param == "simulator":
            base_url = origin + running.simulator.base_path.removesuffix(one.prefix)
            yield await judged(one, python, base_url, running.key, running.model, FAULTS)
            return
        models = {"m": running.model, EMBEDDER: EMBEDDER, **FAULTS}
        settings = {
            "providers": {"p": running.settings},
            "models": {name: {"targets": [{"provider": "p", "model": upstream}]} for name, upstream in models.items()},
        }
        async with running_gateway(settings) as gateway:
            names = {name: name for name in FAULTS}
            yield await judged(one, python, f"http://127.0.0.1:{gateway.port}", KEY, "m", names)


async def test_a_chat_is_read(found: Judgement) -> None:
    answer = found["chat"]["answer"]

    assert (answer["text"], answer["role"], answer["adds_up"]) == ("the sea is calm", "assistant", True)


async def test_a_stream_is_read(found: Judgement) -> None:
    answer = found["stream"]["answer"]

    assert answer["text"] == "the sea is calm"
    assert len(answer["finish"]) == 1


async def test_a_tool_call_is_read(found: Judgement) -> None:
    assert found["tools"]["answer"] == {"calls": CALLED, "finish": "tool_calls"}


async def test_a_streamed_tool_call_is_read(found: Judgement) -> None:
    assert found["tool_stream"]["answer"] == {"calls": CALLED}


@pytest.mark.parametrize(
    ("case", "error", "statuses"),
    [
        ("refused_value", ("BadRequestError", "UnprocessableEntityError"), (400, 422)),
        ("refused_key", ("AuthenticationError",), (401,)),
        ("unknown_model", ("NotFoundError",), (404,)),
        ("busy", ("RateLimitError",), (429,)),
        ("broken", ("InternalServerError",), (500, 502)),
    ],
)
async def test_an_error_is_of_the_class_its_users_catch(
    case: str, error: tuple[str, ...], statuses: tuple[int, ...], found: Judgement
) -> None:
    told = found[case]

    assert set(error) & set(told.get("error", ())), told
    assert told["status"] in statuses


async def test_a_stream_that_breaks_does_not_pass_for_an_answer(found: Judgement, sdk: tuple[Sdk, Any]) -> None:
    told = found["broken_stream"]

    if sdk[0].reads_errors_in_streams:
        assert "APIError" in told.get("error", ()), told
    else:  # it reads the error as a chunk without choices; what is left to notice is that nothing finished
        assert told == {"answer": []}


async def test_models_are_listed(found: Judgement, sdk: tuple[Sdk, Any]) -> None:
    if "models" not in sdk[0].also:
        pytest.skip("this SDK lists its models by an interface of its own")
    names = found["models"]["answer"]

    served = {model.id for model in load_spec(sdk[0].provider).models}
    assert EMBEDDER in names
    assert "m" in names or served & set(names)


async def test_embeddings_are_read(found: Judgement, sdk: tuple[Sdk, Any]) -> None:
    if "embeddings" not in sdk[0].also:
        pytest.skip("this provider has no embeddings by this SDK")
    assert found["embeddings"]["answer"] == [32, 32]
