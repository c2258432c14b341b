"""Each engine is told in its own way which fine-tune is meant, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.adapter import Adapter
from adapters.errors import ProviderError
from adapters.fine_tunes import FineTunes, adapter_of
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Body, FailureKind, Operation

PATTERN = "support-fine-tunes/*"


def adapter(type_id: str, template: str = "{adapter}", known: dict[str, str | int] | None = None) -> Adapter:
    fine_tunes = FineTunes(PATTERN, "qwen3-8b", template, known or {})
    return Adapter(Target("box/qwen3-8b", "box", "qwen3-8b", load_spec(type_id), fine_tunes=fine_tunes))


def sent(made: Adapter, name: str, **members: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}]
    raw = json.dumps({"model": f"support-fine-tunes/{name}", "messages": messages, **members})
    prepared = made.prepare(msgspec.json.decode(raw, type=Body), Operation.CHAT, stream=False)
    body: dict[str, Any] = json.loads(prepared.body)
    return body


@pytest.mark.parametrize(
    ("type_id", "template", "model"),
    [
        ("vllm", "{adapter}", "acme"),
        ("vllm", "support-{adapter}-v2", "support-acme-v2"),
        ("sglang", "{adapter}", "qwen3-8b:acme"),
        ("tgi", "{adapter}", "acme"),
        ("lorax", "ours/{adapter}", "ours/acme"),
        ("openai_compatible", "{adapter}", "acme"),
        ("fireworks", "accounts/us/models/{adapter}#accounts/us/deployments/d1",
         "accounts/us/models/acme#accounts/us/deployments/d1"),
    ],
)  # fmt: skip
def test_most_take_it_as_the_models_name(type_id: str, template: str, model: str) -> None:
    body = sent(adapter(type_id, template), "acme")

    assert body["model"] == model
    assert "lora" not in body


def test_llama_cpp_takes_a_number_and_switches_the_others_off() -> None:
    body = sent(adapter("llama_cpp_server", known={"acme": 0, "zen": 1}), "zen")

    assert (body["model"], body["lora"]) == ("qwen3-8b", [{"id": 1, "scale": 1.0}])


def test_a_parameter_of_its_own_can_be_told_by_the_configuration() -> None:
    spec = load_spec("openai_compatible").with_overrides({"lora": {"model": None, "field": "adapter_id"}})
    target = Target("box/b", "box", "b", spec, fine_tunes=FineTunes(PATTERN, "b"))

    body = sent(Adapter(target), "acme")

    assert (body["model"], body["adapter_id"]) == ("b", "acme")


def test_names_may_be_told_one_by_one_and_then_there_are_no_others() -> None:
    made = adapter("vllm", known={"acme": "acme-2026-11"})

    assert sent(made, "acme")["model"] == "acme-2026-11"
    with pytest.raises(ProviderError) as raised:
        sent(made, "zen")
    assert (raised.value.kind, raised.value.param, raised.value.sent) == (FailureKind.UNKNOWN_ADAPTER, "model", False)
    assert "qwen3-8b" in raised.value.message
    assert PATTERN in raised.value.message


def test_a_client_cannot_pick_another_one_by_a_parameter() -> None:
    assert "lora_path" not in sent(adapter("sglang"), "acme", lora_path="secret")
    assert "adapter_id" not in sent(adapter("lorax"), "acme", adapter_id="secret", api_token="t")
    lora = sent(adapter("llama_cpp_server", known={"acme": 0}), "acme", lora=[{"id": 7, "scale": 1}])["lora"]
    assert lora == [{"id": 0, "scale": 1.0}]


def test_what_the_upstream_does_not_know_is_said_of_the_fine_tune() -> None:
    body = json.dumps({"object": "error", "message": "The model `acme` does not exist.", "code": 404}).encode()

    failure = adapter("vllm").refusal(404, {}, body)
    elsewhere = Adapter(Target("box/m", "box", "m", load_spec("vllm"))).refusal(404, {}, body)

    assert (failure.kind, elsewhere.kind) == (FailureKind.UNKNOWN_ADAPTER, FailureKind.NOT_FOUND)
    assert failure.message == (
        "box has no fine-tune of qwen3-8b by that name. Their names here are 'support-fine-tunes/*'."
    )


@pytest.mark.parametrize("name", ["acme", "a", "acme-v1.2_x", "0", "A" * 127])
def test_a_plain_name_is_one(name: str) -> None:
    assert adapter_of(PATTERN, f"support-fine-tunes/{name}") == name


@pytest.mark.parametrize(
    "name",
    ["", "*", "..", ".a", "a..b", "a.", "-a", "a/b", "../x", "a b", "a\n", "a#d", "a:b", "a@b", "a\\b", "ä",
     "{adapter}", "A" * 200],
)  # fmt: skip
def test_what_could_lead_elsewhere_is_no_name(name: str) -> None:
    assert adapter_of(PATTERN, f"support-fine-tunes/{name}") is None


def test_another_prefix_is_another_model() -> None:
    assert adapter_of(PATTERN, "support/acme") is None


@given(st.text(max_size=40))
def test_whatever_a_client_writes_only_plain_names_reach_an_engine(name: str) -> None:
    found = adapter_of(PATTERN, f"support-fine-tunes/{name}")
    assert found is None or (
        found == name and name.isascii() and not set(name) & set("/\\:#@ {}*") and ".." not in name
    )
