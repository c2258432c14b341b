"""What a target has taught once is known, however often it refuses the same again."""

from __future__ import annotations

from adapters.adapter import Adapter
from adapters.draft import Draft
from adapters.learned_params import LeaveOutAsTold, may_go
from adapters.registry import load_spec
from adapters.target import Target
from adapters.types import Operation
from tests.fakes.bodies import body_of


def test_the_same_lesson_is_learned_once() -> None:
    adapter = Adapter(Target("acme/m", "acme", "m", load_spec("openai_compatible")))
    for _ in range(2000):  # many more than calls may be nested
        adapter.rules.learn_patch("verbosity", LeaveOutAsTold("verbosity", "acme"))
        adapter.rules.learn_limit(None, 100)

    prepared = adapter.prepare(body_of(messages=[], verbosity="low", max_tokens=500), Operation.CHAT, False)

    assert b"verbosity" not in prepared.body
    assert b'"max_tokens":100' in prepared.body


def test_a_member_without_a_name_is_not_what_a_refusal_without_a_name_is_about() -> None:
    assert not may_go(Draft(body_of(**{"": 1}), Operation.CHAT, False), "")
