"""What a provider's file leaves open is taken on the cautious side, and never forgotten."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from adapters.registry import load_spec
from adapters.shapes.fake_stream import FakeStream
from adapters.types import Operation
from tests.fakes.prepared import HELLO, adapter_of, body_of, sent_by

MIDDLE = {"role": "system", "content": "Be brief."}
FIVE = ["a", "b", "c", "d", "e"]


def test_a_system_message_in_mid_conversation_is_a_users_where_only_some_models_take_one() -> None:
    sent = sent_by(adapter_of("fireworks"), messages=[MIDDLE, HELLO, MIDDLE, HELLO])

    assert [message["role"] for message in sent.body["messages"]] == ["system", "user", "user", "user"]
    assert "messages.role=mapped" in sent.told


def test_it_stays_for_a_model_that_is_known_to_take_it() -> None:
    known = {"mid_conversation_system": {"support": "conditional", "models": ["qwen"], "patch": "map_to_user"}}
    messages = [MIDDLE, HELLO, MIDDLE, HELLO]

    of_one = sent_by(adapter_of("fireworks", "qwen3", messages=known), messages=messages)
    of_other = sent_by(adapter_of("fireworks", "glm", messages=known), messages=messages)

    assert [message["role"] for message in of_one.body["messages"]] == ["system", "user", "system", "user"]
    assert [message["role"] for message in of_other.body["messages"]] == ["system", "user", "user", "user"]


@pytest.mark.parametrize("provider", ["openai_compatible", "gpustack"])
def test_stops_beyond_the_fourth_are_watched_for(provider: str) -> None:
    sent = sent_by(adapter_of(provider), stop=FIVE)

    assert sent.body["stop"] == FIVE[:4]
    assert sent.needs is not None
    assert (sent.needs.stops, sent.told) == (("e",), ["stop=emulated"])


@pytest.mark.parametrize("provider", ["gpt4all", "openai_compatible"])
def test_a_server_that_does_not_stream_is_asked_for_the_whole(provider: str) -> None:
    adapter = adapter_of(provider, params={"stream": {"support": "rejected", "patch": "fake_stream"}})
    body = body_of(model="m", messages=[HELLO], stream=True)

    prepared = adapter.prepare(body, Operation.CHAT, True)

    assert isinstance(prepared.shape, FakeStream)
    assert next(str(change) for change in prepared.adjustments) == "stream=emulated"
    assert adapter.prepare(body_of(model="m", messages=[HELLO]), Operation.CHAT, False).shape is None


def test_a_limit_of_choices_says_how_many_there_may_be() -> None:
    spec = load_spec("openai_compatible")

    with pytest.raises(ValidationError, match="'limited' needs 'max'"):
        spec.with_overrides({"params": {"n": {"support": "limited", "max": None}}})
    fanned_out = spec.with_overrides({"params": {"n": {"support": "limited", "max": None, "patch": "fan_out"}}})
    assert fanned_out.params["n"].max is None
