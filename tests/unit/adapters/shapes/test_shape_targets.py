"""What a target with shapes tells of itself, before a request is sent to it."""

from __future__ import annotations

from adapters.adapter import Adapter
from adapters.draft import Unsupported
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Operation
from tests.fakes.bodies import body_of

TOOL = {"type": "function", "function": {"name": "look"}}
ASKED = [{"role": "user", "content": "x"}]
CALLED = [*ASKED, {"role": "tool", "tool_call_id": "a", "content": "5"}]


def adapter(provider: str) -> Adapter:
    return Adapter(Target(f"p/{provider}", "p", "some-model", load_spec(provider)), offers=lambda param: False)


def test_a_plain_conversation_is_nothing_special_for_a_target_that_emulates_tools() -> None:
    local = adapter("local")

    assert "tools" in local.rules.special
    assert "messages" not in local.rules.special
    assert local.prepare(body_of(model="m", messages=ASKED), Operation.CHAT, False).shape is None


def test_a_lossy_shape_says_so_and_one_that_loses_nothing_does_not() -> None:
    local = adapter("local")
    emulated = local.prepare(body_of(model="m", messages=ASKED, tools=[TOOL]), Operation.CHAT, False)
    retold = local.prepare(body_of(model="m", messages=CALLED), Operation.CHAT, False)

    assert (emulated.lossy, [str(one) for one in emulated.adjustments]) == (True, ["tools=emulated"])
    assert (retold.lossy, [str(one) for one in retold.adjustments]) == (False, ["messages=rewritten"])


def test_tools_are_left_out_for_a_client_that_wants_that() -> None:
    body = body_of(model="m", messages=ASKED, tools=[TOOL])
    prepared = adapter("local").prepare(body, Operation.CHAT, False, Unsupported.DROP)

    assert (prepared.shape, [str(one) for one in prepared.adjustments]) == (None, ["tools=dropped"])
