"""What presets say is acted on: requests are what each tool takes, and its refusals are understood."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapters.adapter import Adapter, Prepared
from adapters.draft import Unsupported
from adapters.errors import ProviderError
from adapters.registry import load_spec, preset_types
from adapters.target import Target
from adapters.types import FailureKind, Operation


def _prepare(name: str, stream: bool = False, **body: Any) -> Prepared:
    adapter = Adapter(Target("box/m", "box", "m", load_spec(name)))
    request = {"model": "alias", "messages": [{"role": "user", "content": "hi"}], **body}
    encoded = {key: msgspec.Raw(json.dumps(value).encode()) for key, value in request.items()}
    if stream:
        encoded["stream"] = msgspec.Raw(b"true")
    return adapter.prepare(encoded, Operation.CHAT, stream)


def _sent(prepared: Prepared) -> dict[str, Any]:
    assert prepared.shape is None
    return dict(json.loads(prepared.body))


RENAMES = sorted(name for name in preset_types() if load_spec(name).params["max_completion_tokens"].to == "max_tokens")


@pytest.mark.parametrize("name", RENAMES)
def test_the_newer_limit_reaches_servers_that_know_the_older_one(name: str) -> None:
    sent = _sent(_prepare(name, max_completion_tokens=7))

    assert sent["max_tokens"] == 7
    assert "max_completion_tokens" not in sent


LISTS = sorted(name for name in preset_types() if load_spec(name).params["stop"].form is not None)


@pytest.mark.parametrize("name", LISTS)
def test_one_stop_becomes_a_list_where_only_lists_are_known(name: str) -> None:
    assert _sent(_prepare(name, stop="END"))["stop"] == ["END"]


@pytest.mark.parametrize("name", ["exo", "omlx", "shimmy", "swiftlm", "vllm_mlx", "rapid_mlx", "colibri", "lorax"])
def test_several_choices_are_made_one_by_one_where_there_is_but_one(name: str) -> None:
    assert _prepare(name, n=2).shape is not None
    assert "n" not in _sent(_prepare(name)) or _sent(_prepare(name))["n"] == 1


@pytest.mark.parametrize("name", ["gpt4all", "shimmy", "run_anywhere", "koboldcpp"])
def test_tools_are_emulated_where_there_are_none(name: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}

    assert _prepare(name, tools=[tool]).shape is not None


@pytest.mark.parametrize("name", ["omlx", "swiftlm", "exo", "gpt4all", "shimmy"])
def test_a_bias_that_would_be_lost_is_refused_by_name(name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        _prepare(name, logit_bias={"5": 1})

    assert caught.value.kind is FailureKind.UNSUPPORTED_PARAMETER
    assert caught.value.param == "logit_bias"


def test_a_server_without_streams_is_asked_for_a_whole_answer() -> None:
    assert _prepare("gpt4all", stream=True).shape is not None


def test_a_strict_server_gets_what_it_knows_and_nothing_else() -> None:
    sent = _sent(_prepare("gpt4all", user="u", store=True, seed=1, temperature=0.5))

    assert sent["temperature"] == 0.5
    assert not {"store", "seed"} & set(sent)
    assert sent["max_tokens"] > 16, "its own limit would end every answer after a sentence"


def test_stops_that_a_server_ignores_are_watched_for() -> None:
    prepared = _prepare("run_anywhere", stop=["END"])

    assert "stop" not in _sent(prepared)
    assert prepared.needs is not None
    assert prepared.needs.stops == ("END",)


@pytest.mark.parametrize("name", preset_types())
def test_a_plain_request_goes_as_it_is(name: str) -> None:
    prepared, spec = _prepare(name), load_spec(name)
    sent = _sent(prepared)

    assert {key: sent.pop(key) for key in ("model", "messages")} == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
    }
    assert set(sent) <= {*spec.defaults, "max_tokens"}
    assert {change.param for change in prepared.adjustments} <= {"max_tokens"}


@pytest.mark.parametrize("name", ["gpt4all", "run_anywhere", "mlc_llm"])
def test_parts_of_text_become_one_text_where_lists_are_refused(name: str) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    assert _sent(_prepare(name, messages=[{"role": "user", "content": parts}]))["messages"][0]["content"] == "a\nb"


@pytest.mark.parametrize("name", ["gpt4all", "exo", "mlxcel", "vllm_mlx", "mlc_llm", "koboldcpp"])
def test_the_developer_speaks_as_the_system_where_that_role_is_not_known(name: str) -> None:
    messages = [{"role": "developer", "content": "d"}, {"role": "user", "content": "hi"}]

    assert _sent(_prepare(name, messages=messages))["messages"][0]["role"] == "system"


IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://192.0.2.1/a.png"}}]}


@pytest.mark.parametrize("name", ["koboldcpp", "ollite_rt"])
def test_images_at_an_address_are_fetched_for_servers_that_want_bytes(name: str) -> None:
    assert type(_prepare(name, messages=[IMAGE]).shape).__name__ == "FetchImages"


@pytest.mark.parametrize("name", ["turbofieldfare", "shimmy", "run_anywhere", "gpt4all", "lucebox"])
def test_images_are_refused_where_there_is_text_alone(name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        _prepare(name, messages=[IMAGE])

    assert caught.value.kind is FailureKind.UNSUPPORTED_PARAMETER


@pytest.mark.parametrize(
    ("name", "status", "body"),
    [
        ("exllamav2", 400, {"error": {"message": "Prompt length 9 exceeds the available context size of 8 tokens"}}),
        ("lmdeploy", 400, {"object": "error", "message": "The request exceeds the model context length.", "code": 400}),
        ("candle_vllm", 422, {"message": "Prompt too long."}),
        ("lucebox", 400, {"error": {"message": "This model's maximum context length is 8 tokens."}}),
        ("turbofieldfare", 400, {"error": {"message": "effective prompt exceeds the configured context"}}),
        ("colibri", 400, {"error": {"message": "too long", "code": "context_length_exceeded"}}),
    ],
)
def test_a_prompt_that_is_too_long_is_recognised_in_each_wording(name: str, status: int, body: dict[str, Any]) -> None:
    adapter = Adapter(Target("box/m", "box", "m", load_spec(name)))

    assert adapter.refusal(status, {}, json.dumps(body).encode()).kind is FailureKind.CONTEXT_LENGTH


def test_a_server_that_knows_no_streams_is_not_even_told_of_none() -> None:
    body = {"model": msgspec.Raw(b'"m"'), "messages": msgspec.Raw(b'[{"role":"user","content":"hi"}]')}
    adapter = Adapter(Target("box/m", "box", "m", load_spec("gpt4all")))
    prepared = adapter.prepare({**body, "stream": msgspec.Raw(b"false")}, Operation.CHAT, False)
    assert "stream" not in _sent(prepared)


def test_json_in_a_stream_is_emulated_where_there_is_neither() -> None:
    prepared = _prepare("gpt4all", stream=True, response_format={"type": "json_object"})

    assert "response_format=emulated" in [str(change) for change in prepared.adjustments]


def test_a_flag_is_not_set_for_alternatives_that_are_then_left_out() -> None:
    adapter = Adapter(Target("box/m", "box", "m", load_spec("lemonade")))
    body = {"model": b'"m"', "messages": b'[{"role":"user","content":"hi"}]', "top_logprobs": b"2"}
    raw = {name: msgspec.Raw(value) for name, value in body.items()}

    sent = _sent(adapter.prepare(raw, Operation.CHAT, False, Unsupported.DROP))

    assert not {"logprobs", "top_logprobs"} & sent.keys()


def test_a_forced_call_is_not_looked_for_where_the_tools_were_left_out() -> None:
    adapter = Adapter(Target("box/m", "box", "m", load_spec("colibri")))
    tool = b'[{"type":"function","function":{"name":"look"}}]'
    body = {"model": b'"m"', "messages": b'[{"role":"user","content":"hi"}]', "tools": tool}
    raw = {name: msgspec.Raw(value) for name, value in {**body, "tool_choice": b'"required"'}.items()}

    prepared = adapter.prepare(raw, Operation.CHAT, False, Unsupported.DROP)

    assert prepared.needs is None or prepared.needs.call is None
