"""Numbers: how many tokens an answer may have, and the bounds of what else is a number."""

from __future__ import annotations

import pytest

from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.types import FailureKind, Operation
from tests.fakes.prepared import adapter_of, one, sent_by

# Limits


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_goes_under_the_only_name_that_is_known(name: str) -> None:
    assert sent_by(adapter_of("together"), **one(name, 64)).body["max_tokens"] == 64
    assert "max_completion_tokens" not in sent_by(adapter_of("together"), **one(name, 64)).body


@pytest.mark.parametrize("provider", ["openai_compatible", "fireworks", "groq", "together", "vllm", "mlx_lm"])
def test_of_two_limits_the_newer_one_is_sent_alone(provider: str) -> None:
    sent = sent_by(adapter_of(provider), max_tokens=100, max_completion_tokens=64)
    limits = [sent.body[name] for name in ("max_tokens", "max_completion_tokens") if name in sent.body]
    assert limits == [64]
    assert "max_tokens=dropped" in sent.told


def test_two_limits_that_agree_are_one() -> None:
    assert sent_by(adapter_of("groq"), max_tokens=64, max_completion_tokens=64).told == []


def test_a_limit_without_a_value_is_none() -> None:
    sent = sent_by(adapter_of("fireworks"), max_tokens=100, max_completion_tokens=None)
    assert sent.body["max_tokens"] == 100
    assert "max_completion_tokens" not in sent.body


def test_an_old_limit_becomes_the_new_one_where_that_alone_is_known() -> None:
    renamed = {"max_tokens": {"support": "renamed", "to": "max_completion_tokens"}}
    sent = sent_by(adapter_of("openai_compatible", params=renamed), max_tokens=5)
    assert (sent.body["max_completion_tokens"], sent.told) == (5, ["max_tokens=renamed"])


def test_a_text_completion_has_the_old_limit_alone() -> None:
    renamed = {"max_tokens": {"support": "renamed", "to": "max_completion_tokens"}}
    sent = sent_by(adapter_of("openai_compatible", params=renamed), Operation.COMPLETIONS, max_tokens=5)
    assert (sent.body["max_tokens"], sent.told) == (5, [])


def test_a_limit_above_the_targets_is_lowered_and_told() -> None:
    sent = sent_by(adapter_of("groq", most=1000), max_tokens=4000)
    assert (sent.body["max_tokens"], sent.told, sent.lossy) == (1000, ["max_tokens=clamped"], True)
    assert sent_by(adapter_of("groq", most=1000), max_tokens=1000).told == []


def test_a_limit_above_the_targets_is_refused_where_nothing_may_change() -> None:
    with pytest.raises(ProviderError) as refusal:
        sent_by(adapter_of("groq", most=1000), unsupported=Unsupported.REJECT, max_tokens=4000)
    assert (refusal.value.kind, refusal.value.param) == (FailureKind.UNSUPPORTED_PARAMETER, "max_tokens")


def test_a_target_that_does_worse_without_a_limit_always_gets_one() -> None:
    sent = sent_by(adapter_of("mlx_lm"))
    assert (sent.body["max_tokens"], sent.told) == (4096, ["max_tokens=clamped"])
    assert sent_by(adapter_of("cerebras", most=512)).body["max_completion_tokens"] == 512
    assert sent_by(adapter_of("cerebras"), max_tokens=9).body.get("max_completion_tokens") is None


# Bounds


@pytest.mark.parametrize(
    ("bounds", "given", "sent"),
    [
        ({"max": 1}, 1.5, 1.0),
        ({"max": 1}, 0.5, 0.5),
        ({"min": 0.1}, 0, 0.1),
        ({"min_exclusive": 0}, 0, 0.001),
        ({"max_exclusive": 2}, 2, 1.999),
    ],
)
def test_a_number_is_brought_within_the_bounds(bounds: dict[str, float], given: float, sent: float) -> None:
    target = adapter_of("openai_compatible", params={"temperature": {"support": "limited", **bounds}})
    got = sent_by(target, temperature=given)
    assert got.body["temperature"] == pytest.approx(sent)
    assert got.told == ([] if given == sent else ["temperature=clamped"])
    assert not got.lossy


def test_a_value_that_says_what_holds_anyway_is_left_out() -> None:
    sent = sent_by(adapter_of("tgi"), top_p=1)
    assert ("top_p" in sent.body, sent.told) == (False, [])
    assert sent_by(adapter_of("tgi"), top_p=0.9).body["top_p"] == 0.9


def test_a_sign_is_taken_off_where_none_is_known() -> None:
    sent = sent_by(adapter_of("tgi"), seed=-7)
    assert (sent.body["seed"], sent.told) == (7, ["seed=mapped"])


def test_a_target_with_fewer_alternatives_gives_less() -> None:
    sent = sent_by(adapter_of("fireworks"), logprobs=True, top_logprobs=9)
    assert (sent.body["top_logprobs"], sent.lossy) == (5, True)
    assert sent.told == ["top_logprobs=clamped"]
