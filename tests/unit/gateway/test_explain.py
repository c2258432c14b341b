"""A dry run says what the pipeline would do: the same order, the same changes, and what it would cost."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.draft import Unsupported
from gateway.catalog import Catalog
from gateway.data_plane.strict_json import decode_members
from gateway.errors import GatewayError
from gateway.estimate import Fit
from gateway.explain import Explanation, Verdict, _Nowhere, endpoint_for, explain
from gateway.pipeline.backends import Backends
from gateway.pipeline.call import Call
from gateway.settings import Settings, load_settings

CONFIG = """\
providers:
  groq: {type: groq, api_key: k}
  cerebras: {type: cerebras, api_key: k}
  gpu: {type: vllm, base_url: "http://127.0.0.1:1/v1"}
  ears: {type: audio_cpp, base_url: "http://127.0.0.1:1/v1"}
models:
  chat:
    targets:
      - {provider: groq, model: openai/gpt-oss-120b}
      - {provider: cerebras, model: gpt-oss-120b}
      - {provider: gpu, model: m, context_window: 2000, max_output_tokens: 1000}
  narrow: {targets: [{provider: groq, model: openai/gpt-oss-120b}]}
  deaf: {targets: [{provider: ears, model: m}]}
  soon: {targets: [{provider: cerebras, model: gemma-4-31b}]}
  shared:
    targets:
      - {provider: groq, model: openai/gpt-oss-120b, weight: 3}
      - {provider: cerebras, model: gpt-oss-120b}
      - {provider: gpu, model: m, weight: 0}
    route: {strategy: weighted}
"""
HELLO = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    return load_settings(path, environ={})


def explained(
    settings: Settings, model: str, body: dict[str, Any], unsupported: Unsupported | None = None
) -> Explanation:
    catalog = Catalog.build(settings)
    found = catalog.models[model]
    members = decode_members(json.dumps({"model": model, **body}).encode())
    return explain(settings, catalog, found, members, today=date(2026, 11, 30), unsupported=unsupported)


def places(explanation: Explanation) -> list[tuple[str, int | None, Verdict]]:
    return [(one.target.provider, one.place, one.verdict) for one in explanation.targets]


def test_a_plain_request_goes_to_the_targets_as_they_stand_in_the_configuration(settings: Settings) -> None:
    explanation = explained(settings, "chat", HELLO)

    assert places(explanation) == [
        ("groq", 1, Verdict.ELIGIBLE),
        ("cerebras", 2, Verdict.ELIGIBLE),
        ("gpu", 3, Verdict.ELIGIBLE),
    ]
    assert explanation.targets[0].reason == "priority: number 1 of 3 in the configuration"


def test_where_targets_are_drawn_their_chances_are_told(settings: Settings) -> None:
    explanation = explained(settings, "shared", HELLO)

    assert {one.target.provider: one.reason for one in explanation.targets} == {
        "groq": "weighted: drawn first for 75% of the requests",
        "cerebras": "weighted: drawn first for 25% of the requests",
        "gpu": "weighted: after all that have a weight",
    }
    assert explanation.targets[2].target.provider == "gpu"


def test_a_target_that_lacks_a_parameter_is_left_out_with_the_reason(settings: Settings) -> None:
    explanation = explained(settings, "chat", {**HELLO, "logit_bias": {"5": 1}})

    assert places(explanation)[0] == ("gpu", 1, Verdict.ELIGIBLE)
    assert [one.place for one in explanation.targets[1:]] == [None, None]
    assert "logit_bias" in explanation.targets[1].reason


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"logprobs": True},
        {"logit_bias": {"5": 1}},
        {"n": 3, "stop": ["a", "b", "c", "d", "e"]},
        {"tools": [{"type": "function", "function": {"name": "f"}}], "response_format": {"type": "json_object"}},
        {"max_tokens": 50_000},
    ],
)
@pytest.mark.parametrize("unsupported", list(Unsupported))
def test_the_order_is_the_one_that_requests_are_tried_in(
    settings: Settings, body: dict[str, Any], unsupported: Unsupported
) -> None:
    catalog = Catalog.build(settings)
    model = catalog.models["chat"]
    members = decode_members(json.dumps({"model": "chat", **HELLO, **body}).encode())
    endpoint = endpoint_for(members)
    call = Call(cast("Any", None), endpoint.operation, 0.0, 0.0, body=dict(members), model=model)
    call.unsupported = unsupported
    endpoint.read(call)
    try:
        plan = [backend.target.name for backend in Backends(settings, catalog, _Nowhere(), {}).route(model).plan(call)]
    except GatewayError:
        plan = []

    told = explain(settings, catalog, model, members, today=date(2026, 11, 30), unsupported=unsupported)

    refused = {one.target.name for one in told.targets if one.verdict is Verdict.REFUSED}
    assert [one.target.name for one in told.targets if one.place] == [name for name in plan if name not in refused]


def test_every_change_and_the_body_that_would_be_sent_are_told(settings: Settings) -> None:
    [one] = explained(settings, "narrow", {**HELLO, "max_tokens": 10, "metadata": {"a": "b"}, "store": True}).targets

    assert {str(change) for change in one.adjustments} >= {"metadata=dropped"}
    assert json.loads(one.body)["model"] == "openai/gpt-oss-120b"


def test_several_choices_pay_for_the_prompt_and_the_answer_as_often(settings: Settings) -> None:
    """47 bytes of messages are 19 tokens: 2 × 19 × 0.15 + 2 × 100 × 0.60 = 125.7 USD a million."""
    body = {"messages": [{"role": "user", "content": "word word word"}], "n": 2, "max_tokens": 100}
    [one] = explained(settings, "narrow", body).targets

    assert one.shape == "n"
    assert one.estimate is not None
    assert (one.estimate.usage.prompt_tokens, one.estimate.usage.completion_tokens) == (38, 200)
    assert one.estimate.cost_nusd == 125_700


def test_an_answer_without_a_limit_counts_with_the_targets_or_4096(settings: Settings) -> None:
    groq, _, gpu = explained(settings, "chat", HELLO).targets

    assert groq.estimate is not None
    assert gpu.estimate is not None
    assert (groq.estimate.usage.completion_tokens, gpu.estimate.usage.completion_tokens) == (4096, 1000)
    assert gpu.estimate.cost_nusd is None, "nobody knows the price"


@pytest.mark.parametrize(
    ("words", "limit", "fit"),
    [(10, 100, Fit.FITS), (10, 2000, Fit.DOUBTFUL), (1500, None, Fit.DOUBTFUL), (2001, None, Fit.TOO_LONG)],
)
def test_whether_a_prompt_fits_is_told_by_how_sure_that_is(
    settings: Settings, words: int, limit: int | None, fit: Fit
) -> None:
    body = {"messages": [{"role": "user", "content": "word " * words}]}
    targets = explained(settings, "chat", body | ({"max_tokens": limit} if limit else {})).targets
    [gpu] = [one for one in targets if one.target.provider == "gpu"]

    assert gpu.estimate is not None
    assert gpu.estimate.fit is fit


def test_where_no_target_is_left_the_clients_error_is_told(settings: Settings) -> None:
    for model in ("narrow", "deaf"):
        explanation = explained(settings, model, {**HELLO, "logit_bias": {"5": 1}})

        assert [one.verdict for one in explanation.targets] == [Verdict.REFUSED]
        assert explanation.refusal is not None


def test_a_model_on_its_way_out_is_remarked_on(settings: Settings) -> None:
    [one] = explained(settings, "soon", HELLO).targets

    assert one.remarks == ("the model is deprecated",)


def test_a_body_no_client_may_send_is_refused_as_it_would_be(settings: Settings) -> None:
    with pytest.raises(GatewayError, match="temperature"):
        explained(settings, "chat", {**HELLO, "temperature": "hot"})


@pytest.mark.parametrize(
    ("body", "path"),
    [(HELLO, "/chat/completions"), ({"prompt": "a"}, "/completions"), ({"input": "a"}, "/embeddings")],
)
def test_the_endpoint_follows_from_where_the_prompt_stands(body: dict[str, Any], path: str) -> None:
    assert endpoint_for(decode_members(json.dumps(body).encode())).path == path
