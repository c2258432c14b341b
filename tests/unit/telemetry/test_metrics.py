"""What is counted where, with labels from a closed set, in one worker and over several."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Action, Adjustment, FailureKind, Operation, Usage
from gateway.catalog import Catalog, Model
from gateway.pipeline.call import Call
from gateway.services import Configuration
from gateway.telemetry import names
from gateway.telemetry.families import FAMILIES
from gateway.telemetry.gauges import watch_parts
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import OUTCOMES, Outcome
from gateway.telemetry.snapshots import Snapshots
from local_engine.state import EngineState
from tests.unit.telemetry.prometheus_text import ParsedFamily, parse


def target(provider: str = "groq", model: str = "llama", type_id: str = "groq") -> Target:
    return Target(f"{provider}/{model}", provider, model, load_spec(type_id))


def scrape(metrics: Metrics) -> dict[str, ParsedFamily]:
    return parse(metrics.render())


def test_every_name_has_a_family_and_they_are_announced_before_anything_happened() -> None:
    parsed = scrape(Metrics())

    assert list(parsed) == [family.name for family in FAMILIES]
    assert parsed[names.BUILD_INFO].samples


def test_a_request_is_counted_with_its_status_code_and_times() -> None:
    metrics = Metrics(["chat"])
    metrics.request_done("chat_completions", "chat", 200, None, True, 0.3, 0.0004)
    metrics.request_done("chat_completions", "chat", 429, "rate_limit_exceeded", True, 0.01, 0.0004)

    parsed = scrape(metrics)

    requests = parsed[names.REQUESTS]
    of_chat = {"endpoint": "chat_completions", "model": "chat"}
    assert requests.value(names.REQUESTS, **of_chat, status="200", error_code="") == 1
    assert requests.value(names.REQUESTS, **of_chat, status="429", error_code="rate_limit_exceeded") == 1
    duration = parsed[names.REQUEST_DURATION]
    assert duration.value(names.REQUEST_DURATION + "_count", **of_chat, stream="true") == 2
    assert duration.value(names.REQUEST_DURATION + "_sum", **of_chat, stream="true") == pytest.approx(0.31)
    assert parsed[names.OVERHEAD].value(names.OVERHEAD + "_bucket", **of_chat, stream="true", le="0.0005") == 2


def test_names_that_clients_make_up_share_one_series() -> None:
    metrics = Metrics(["chat"])
    for number in range(100):
        metrics.request_done(f"v9/{number}", f"model-{number}", 404, "model_not_found", False, 0.01, 0.01)
    metrics.request_done("chat_completions", None, 400, "invalid_json", False, 0.01, 0.01)

    samples = scrape(metrics)[names.REQUESTS].samples

    assert {dict(labels)["model"] for _, labels in samples} == {"other"}
    assert sorted(samples.values()) == [1, 100]


def test_an_attempt_is_counted_under_its_target() -> None:
    metrics = Metrics(["chat"])
    groq = target()
    metrics.attempt_done(
        groq, Operation.CHAT, None, 0.5, ttft_seconds=0.02, usage=Usage(100, 20, 60, 5), cost_nusd=1_500_000
    )

    parsed = scrape(metrics)

    inference = {
        "gen_ai_operation_name": "chat",
        "gen_ai_provider_name": "groq",
        "gen_ai_request_model": "llama",
        "error_type": "",
    }
    assert parsed[names.INFERENCE_DURATION].value(names.INFERENCE_DURATION + "_count", **inference) == 1
    assert parsed[names.FIRST_CHUNK].value(names.FIRST_CHUNK + "_bucket", **inference, le="0.02") == 1
    assert parsed[names.FIRST_CHUNK].value(names.FIRST_CHUNK + "_bucket", **inference, le="0.01") == 0
    of_model = {"provider": "groq", "model": "llama"}
    assert parsed[names.INPUT_TOKENS].value(names.INPUT_TOKENS, **of_model) == 100
    assert parsed[names.OUTPUT_TOKENS].value(names.OUTPUT_TOKENS, **of_model) == 20
    assert parsed[names.CACHED_TOKENS].value(names.CACHED_TOKENS, **of_model) == 60
    assert parsed[names.REASONING_TOKENS].value(names.REASONING_TOKENS, **of_model) == 5
    assert parsed[names.COST].value(names.COST, **of_model, team="") == 0.0015
    assert parsed[names.ATTEMPTS].value(names.ATTEMPTS, provider="groq", target="groq/llama", outcome="ok") == 1


def test_an_attempt_that_failed_is_counted_by_its_outcome() -> None:
    metrics = Metrics()
    metrics.attempt_done(target(), Operation.CHAT, FailureKind.RATE_LIMITED, 0.1)
    metrics.attempt_done(target(), Operation.CHAT, None, 0.1, outcome=Outcome.CANCELLED)

    samples = scrape(metrics)[names.ATTEMPTS].samples
    outcomes = {dict(labels)["outcome"]: value for (_, labels), value in samples.items()}
    assert {name: value for name, value in outcomes.items() if value} == {"rate_limited": 1, "cancelled": 1}


@pytest.mark.parametrize("count", [1, 3, 500])
def test_answers_are_counted_together_as_one_by_one(count: int) -> None:
    together, alone = Metrics(["chat"]), Metrics(["chat"])
    groq = target()
    answered = [
        (0.01 * number, 0.0001 * number, 0.009 * number, 0.005 * number, number, 2 * number, number // 2, 3, 10**9)
        for number in range(count)
    ]
    together.answered(groq, Operation.CHAT, "chat", True, answered)
    for total, overhead, duration, first, prompt, completion, cached, reasoning, cost in answered:
        alone.request_done(Operation.CHAT, "chat", 200, None, True, total, overhead)
        usage = Usage(prompt, completion, cached, reasoning)
        alone.attempt_done(groq, Operation.CHAT, None, duration, first, usage, cost)

    found, expected = scrape(together), scrape(alone)
    for name, family in expected.items():
        assert found[name].samples == pytest.approx(family.samples), name


def test_every_kind_of_failure_has_an_outcome() -> None:
    assert set(OUTCOMES) == set(FailureKind)


def test_retries_and_fallbacks_name_both_ends() -> None:
    metrics = Metrics(["chat"])
    first, second = target(), target("cerebras", "llama", "cerebras")
    metrics.retried("chat", first, FailureKind.RESET)
    metrics.fell_back("chat", first, second, FailureKind.OVERLOADED)

    parsed = scrape(metrics)

    first_to = {"model": "chat", "from": "groq/llama"}
    assert parsed[names.RETRIES].value(names.RETRIES, **first_to, to="groq/llama", reason="reset") == 1
    assert parsed[names.FALLBACKS].value(names.FALLBACKS, **first_to, to="cerebras/llama", reason="overloaded") == 1


def test_adjusted_parameters_that_no_file_knows_share_one_series() -> None:
    metrics = Metrics()
    metrics.adjusted(
        target(),
        [
            Adjustment("logprobs", Action.DROPPED),
            Adjustment("made_up_1", Action.DROPPED),
            Adjustment("made_up_2", Action.DROPPED),
        ],
    )

    adjusted = scrape(metrics)[names.ADJUSTED]

    assert adjusted.value(names.ADJUSTED, provider="groq", param="logprobs", action="dropped") == 1
    assert adjusted.value(names.ADJUSTED, provider="groq", param="other", action="dropped") == 2


def test_figures_kept_elsewhere_are_read_at_the_scrape() -> None:
    metrics = Metrics()
    waiting = [3]
    metrics.watch(names.QUEUE_DEPTH, lambda: [(("local",), waiting[0])])
    metrics.watch(names.LOG_LINES_DROPPED, lambda: [((), 2)])
    waiting[0] = 4

    parsed = scrape(metrics)

    assert parsed[names.QUEUE_DEPTH].value(names.QUEUE_DEPTH, provider="local") == 4
    assert parsed[names.LOG_LINES_DROPPED].value(names.LOG_LINES_DROPPED) == 2


def test_workers_are_summed_and_the_dead_keep_their_counters(tmp_path: Path) -> None:
    workers = [Metrics(["chat"], snapshots=Snapshots(tmp_path)) for _ in range(3)]
    for healthy, worker in zip((1, 0, 1), workers, strict=True):
        worker.request_done("chat_completions", "chat", 200, None, False, 0.1, 0.001)
        worker.watch(names.IN_FLIGHT, lambda: [(("groq",), 1)])
        worker.watch(names.TARGET_HEALTHY, lambda healthy=healthy: [(("groq", "groq/llama"), healthy)])  # type: ignore[misc]
    workers[0].publish()
    workers[1].publish(last=True)

    parsed = scrape(workers[2])

    assert sum(parsed[names.REQUESTS].samples.values()) == 3
    assert parsed[names.IN_FLIGHT].value(names.IN_FLIGHT, provider="groq") == 2
    # The one worker that saw the target unhealthy has ended; its view no longer counts.
    assert parsed[names.TARGET_HEALTHY].value(names.TARGET_HEALTHY, provider="groq", target="groq/llama") == 1
    assert len(parsed[names.BUILD_INFO].samples) == 1


def test_a_directory_that_has_gone_costs_nobody_anything(tmp_path: Path) -> None:
    metrics = Metrics(["chat"], snapshots=Snapshots(tmp_path / "gone"))
    metrics.publish(last=True)

    assert scrape(metrics)[names.BUILD_INFO].samples


def test_the_state_of_targets_and_engines_is_read_at_the_scrape() -> None:
    local = target("local", "small", "local")
    catalog = Catalog({"small": Model("small", (local, target()))}, {}, {})
    unusable = {"local/small"}
    parts = SimpleNamespace(
        queues={"local": SimpleNamespace(waiting=3, engine=SimpleNamespace(state=EngineState.UNLOADED))},
        unusable=lambda now: unusable,
        limits=lambda: iter(()),
    )
    metrics = Metrics(catalog.models)
    attempts = [
        SimpleNamespace(target=catalog.models["small"].targets[1], ended=0.0),
        SimpleNamespace(target=catalog.models["small"].targets[1], ended=3.0),
        None,
    ]
    calls = cast("list[Call]", [SimpleNamespace(last_attempt=attempt) for attempt in attempts])
    current = cast("Configuration", SimpleNamespace(catalog=catalog, backends=parts))
    watch_parts(metrics, lambda: current, calls=calls)

    in_flight = scrape(metrics)[names.IN_FLIGHT]
    assert in_flight.value(names.IN_FLIGHT, provider="local") == 0
    assert in_flight.value(names.IN_FLIGHT, provider="groq") == 1

    def healthy() -> dict[str, float]:
        samples = scrape(metrics)[names.TARGET_HEALTHY].samples
        return {dict(labels)["target"]: value for (_, labels), value in samples.items()}

    hosted = target().name
    assert healthy() == {"local/small": 0, hosted: 1}
    unusable.clear()
    assert healthy() == {"local/small": 1, hosted: 1}
    parsed = scrape(metrics)
    assert parsed[names.QUEUE_DEPTH].value(names.QUEUE_DEPTH, provider="local") == 3
    assert parsed[names.LOCAL_LOADED].value(names.LOCAL_LOADED, provider="local") == 0
    assert parsed[names.LOG_LINES_DROPPED].value(names.LOG_LINES_DROPPED) == 0


def test_counting_is_cheap() -> None:
    metrics = Metrics(["chat"])
    groq, usage = target(), Usage(10, 20)
    began = time.process_time()
    for _ in range(20_000):
        metrics.request_done("chat_completions", "chat", 200, None, True, 0.3, 0.0004)
        metrics.attempt_done(groq, Operation.CHAT, None, 0.3, 0.1, usage, 100)
    # About 3 µs a request on an idle machine; the limit only catches a change of kind.
    assert (time.process_time() - began) / 20_000 < 100e-6
