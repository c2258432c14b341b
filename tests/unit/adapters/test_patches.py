"""Patches: what is sent on, renamed, left out or refused, and that nothing else is touched."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.adapter import Adapter, refuse_operation
from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.parameter_patches import AtMost
from adapters.patches import NEUTRAL, LeaveOut, Patch, Rename, is_neutral
from adapters.registry import load_spec
from adapters.request_patches import compile_patches
from adapters.target import Target
from adapters.types import Body, FailureKind, Operation


def body_of(**members: Any) -> Body:
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in members.items()}


def plain(body: Body) -> dict[str, Any]:
    return {name: json.loads(bytes(value)) for name, value in body.items()}


def patched(patch: Patch, body: Body) -> list[str]:
    """Change *body* by *patch*; what was told about it."""
    draft = Draft(body, Operation.CHAT, False)
    patch(draft)
    return list(map(str, draft.adjustments))


def adapter(provider: str = "openai_compatible", secrets: tuple[str, ...] = (), **overrides: Any) -> Adapter:
    spec = load_spec(provider).with_overrides(overrides)
    return Adapter(Target("acme/up", "acme", "up", spec), secrets)


def test_a_rename_keeps_the_value() -> None:
    body = body_of(max_completion_tokens=5)
    assert patched(Rename("max_completion_tokens", "max_tokens"), body) == ["max_completion_tokens=renamed"]
    assert plain(body) == {"max_tokens": 5}


def test_a_value_under_the_providers_name_wins() -> None:
    body: Body = body_of(max_completion_tokens=5, max_tokens=7)
    assert patched(Rename("max_completion_tokens", "max_tokens"), body) == []
    assert plain(body) == {"max_tokens": 7}


@pytest.mark.parametrize(
    ("param", "neutral"), [(param, raw) for param, raws in NEUTRAL.items() for raw in sorted(raws)]
)
def test_a_neutral_value_is_no_use_of_a_parameter(param: str, neutral: bytes) -> None:
    assert is_neutral(param, msgspec.Raw(neutral))
    assert is_neutral(param, msgspec.Raw(b"null"))
    assert not is_neutral(param, msgspec.Raw(b'"anything else"'))
    for patch in (LeaveOut(param, "acme"), LeaveOut(param, "acme", refuse=True)):
        body: Body = {param: msgspec.Raw(neutral)}
        assert (patched(patch, body), body) == ([], {})


@pytest.mark.parametrize(
    ("param", "written", "neutral"),
    [
        ("response_format", b'{\n    "type": "text"\n}', True),
        ("response_format", b'{ "type": "json_object" }', False),
        ("tools", b"[ ]", True),
        ("logit_bias", b"{\n}", True),
        ("modalities", b'[ "text" ]', True),
        ("temperature", b"1.00", True),
        ("temperature", b"1e999", False),
        ("n", b"true", False),
        ("user", b"[ ]", False),
    ],
)
def test_what_means_off_may_be_written_in_any_way(param: str, written: bytes, neutral: bool) -> None:
    assert is_neutral(param, msgspec.Raw(written)) is neutral


def test_a_refusal_names_parameter_and_provider() -> None:
    with pytest.raises(ProviderError) as caught:
        LeaveOut("logit_bias", "acme", "It has no such thing.")(
            Draft(body_of(logit_bias={"5": 1}), Operation.CHAT, False)
        )
    error = caught.value
    assert (error.kind, error.param, error.code) == (
        FailureKind.UNSUPPORTED_PARAMETER,
        "logit_bias",
        "unsupported_parameter",
    )
    assert not error.sent
    assert error.message == "'logit_bias' is not supported by acme. It has no such thing."


def test_what_is_stripped_is_told() -> None:
    body = body_of(user="u", seed=1)
    assert patched(LeaveOut("user", "acme"), body) == ["user=dropped"]
    assert plain(body) == {"seed": 1}


@pytest.mark.parametrize(("value", "passes"), [(1, True), (4, True), (5, False), (10**30, False)])
def test_a_number_has_its_most(value: int, passes: bool) -> None:
    body = body_of(n=value)
    if passes:
        patched(AtMost("n", "acme", 4), body)
        assert plain(body) == {"n": value}
    else:
        with pytest.raises(ProviderError, match="at most 4"):
            patched(AtMost("n", "acme", 4), body)


# Whole adapters


@given(
    st.dictionaries(st.text(min_size=1, max_size=8).map("x_".__add__), st.integers() | st.text(max_size=5), max_size=5)
)
def test_what_nobody_knows_goes_byte_for_byte(members: dict[str, Any]) -> None:
    body = body_of(model="m", messages=[], **members)
    prepared = ADAPTER.prepare(body, Operation.CHAT, False)
    sent = msgspec.json.decode(prepared.body, type=dict[str, msgspec.Raw])
    assert {name: bytes(value) for name, value in sent.items() if name.startswith("x_")} == {
        name: bytes(value) for name, value in body.items() if name.startswith("x_")
    }
    assert prepared.adjustments == ()
    assert plain(body)["model"] == "m"  # a fallback is prepared from the same body


ADAPTER = adapter()


@pytest.mark.parametrize(
    ("given_options", "sent"),
    [
        (None, {"include_usage": True}),
        ({}, {"include_usage": True}),
        ({"include_usage": False, "x": 1}, {"include_usage": True, "x": 1}),
        ({"include_usage": True}, {"include_usage": True}),
    ],
)
def test_usage_is_asked_for_in_every_stream(given_options: Any, sent: Any) -> None:
    body = body_of(model="m", messages=[], stream=True, stream_options=given_options)
    assert json.loads(ADAPTER.prepare(body, Operation.CHAT, True).body)["stream_options"] == sent


@pytest.mark.parametrize("provider", ["openai_compatible", "groq", "cerebras", "together", "fireworks", "vllm"])
def test_a_simple_request_passes_every_provider_unchanged(provider: str) -> None:
    body = body_of(model="m", messages=[{"role": "user", "content": "x"}], temperature=0.5, top_p=0.9, max_tokens=5)
    prepared = adapter(provider).prepare(body, Operation.CHAT, False)
    assert prepared.adjustments == ()
    sent = json.loads(prepared.body)
    assert sent.pop("context_length_exceeded_behavior", "error") == "error"
    assert sent == {**plain(body), "model": "up"}


def test_several_refusals_always_name_the_same_parameter() -> None:
    refusing = {name: {"support": "rejected", "patch": "error"} for name in ("seed", "logit_bias", "user")}
    body = body_of(model="m", messages=[], user="u", seed=1, logit_bias={"1": 1})
    with pytest.raises(ProviderError) as caught:
        adapter(params=refusing).prepare(body, Operation.CHAT, False)
    assert caught.value.param == "logit_bias"


def test_what_only_explains_compiles_to_no_patch() -> None:
    assert "temperature" not in compile_patches(load_spec("openai_compatible"), "acme").by_param


def test_secrets_are_blotted_out_of_what_a_provider_says() -> None:
    refusal = adapter(secrets=("sk-secret", "")).refusal(400, {}, b'{"error":{"message":"not with sk-secret"}}')
    assert refusal.message == "not with [key]"


def test_an_operation_that_is_not_offered_is_named() -> None:
    error = refuse_operation(adapter().target, Operation.EMBEDDINGS)
    assert error.message == "acme does not offer embeddings for this model."
    assert error.kind is FailureKind.UNSUPPORTED_PARAMETER
