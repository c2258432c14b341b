"""A simulated provider refuses parameters, values and combinations as its file says, and takes the rest."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.registry import load_spec
from adapters.simulator.engine import Simulator
from adapters.spec import Support
from adapters.vocabulary import Patch
from tests.unit.adapters.simulator.asking import CHATS, ask, simulator, tool
from tests.unit.adapters.simulator.refusals import assert_refused

SCHEMA = {
    "type": "object",
    "properties": {"sky": {"type": "string"}},
    "required": ["sky"],
    "additionalProperties": False,
}
USES: dict[str, dict[str, Any]] = {
    "frequency_penalty": {"frequency_penalty": 0.5},
    "logit_bias": {"logit_bias": {"50256": -100}},
    "logprobs": {"logprobs": True},
    "max_completion_tokens": {"max_completion_tokens": 5},
    "max_tokens": {"max_tokens": 5},
    "metadata": {"metadata": {"a": "b"}},
    "modalities": {"modalities": ["text", "audio"]},
    "n": {"n": 2},
    "parallel_tool_calls": {"tools": [tool("look")], "parallel_tool_calls": False},
    "prediction": {"prediction": {"type": "content", "content": "Hello"}},
    "presence_penalty": {"presence_penalty": 0.5},
    "prompt_cache_key": {"prompt_cache_key": "k"},
    "response_format.json_object": {"response_format": {"type": "json_object"}},
    "response_format.json_schema": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, "strict": True}}
    },
    "response_format.text": {"response_format": {"type": "text"}},
    "safety_identifier": {"safety_identifier": "s"},
    "seed": {"seed": 7},
    "service_tier": {"service_tier": "auto"},
    "stop": {"stop": ["END"]},
    "store": {"store": True},
    "stream": {"stream": True},
    "stream_options.include_usage": {"stream": True, "stream_options": {"include_usage": True}},
    "temperature": {"temperature": 0.5},
    "tool_choice": {"tools": [tool("look")], "tool_choice": "required"},
    "tools": {"tools": [tool("look")]},
    "top_logprobs": {"logprobs": True, "top_logprobs": 2},
    "top_p": {"top_p": 0.5},
    "user": {"user": "u"},
    "verbosity": {"verbosity": "low"},
    "web_search_options": {"web_search_options": {}},
}
REFUSED = (Support.REJECTED, Support.UNKNOWN)
TAKEN = (Support.NATIVE, Support.IGNORED)


def params(*supports: Support) -> list[tuple[str, str]]:
    return [
        (provider, name)
        for provider in CHATS
        for name, rule in load_spec(provider).params.items()
        if rule.support in supports and name in USES
    ]


@pytest.mark.parametrize(("provider", "name"), params(*REFUSED))
def test_what_is_rejected_is_refused(provider: str, name: str) -> None:
    sim = simulator(provider)
    rule = sim.spec.params[name]
    heard = ask(sim, **USES[name])

    assert_refused(sim, heard, rule.status or sim.spec.transport.unknown_body_fields.status)


@pytest.mark.parametrize(("provider", "name"), params(*TAKEN))
def test_what_is_taken_or_ignored_is_answered(provider: str, name: str) -> None:
    sim = simulator(provider)
    using = USES[name]
    if name in ("tool_choice", "parallel_tool_calls") and not _takes(sim, "tools"):
        pytest.skip("needs tools, which it has not")
    if name == "top_logprobs" and sim.spec.params["logprobs"].form is not None:
        using = {"top_logprobs": 2}
    heard = [ask(sim, model=model, **using) for model in sim.models.names()]

    assert 200 in [one.status for one in heard], heard[0].raw  # some models lack what the provider has


def _takes(sim: Simulator, name: str) -> bool:
    return sim.spec.params[name].support not in REFUSED


@pytest.mark.parametrize("provider", CHATS)
def test_a_field_nobody_knows_does_what_the_file_says(provider: str) -> None:
    sim = simulator(provider)
    facts = sim.spec.transport.unknown_body_fields
    heard = ask(sim, no_such_field=1)

    if facts.only_known:
        assert_refused(sim, heard, facts.status)
        assert "no_such_field" in heard.raw.decode()
    else:
        assert heard.status == 200


BOUNDS = [
    (provider, name, value)
    for provider in CHATS
    for name, rule in load_spec(provider).params.items()
    if rule.support is Support.LIMITED and name not in ("tools", "stop", "logprobs")
    for value in ([rule.min - 1] if rule.min is not None else []) + ([rule.max + 1] if rule.max is not None else [])
]


@pytest.mark.parametrize(("provider", "name", "value"), BOUNDS)
def test_a_value_out_of_bounds_is_refused(provider: str, name: str, value: float) -> None:
    sim = simulator(provider)
    asked: dict[str, Any] = {name: int(value) if value == int(value) else value}
    if name == "top_logprobs":
        asked["logprobs"] = True
    heard = ask(sim, **asked)

    assert_refused(sim, heard, sim.spec.params[name].status)


@pytest.mark.parametrize("provider", [name for name in CHATS if load_spec(name).params["stop"].max_items])
def test_more_stops_than_it_takes_are_refused(provider: str) -> None:
    sim = simulator(provider)
    most = sim.spec.params["stop"].max_items or 0

    assert ask(sim, stop=[f"s{number}" for number in range(most)]).status == 200
    assert_refused(sim, ask(sim, stop=[f"s{number}" for number in range(most + 1)]), sim.spec.params["stop"].status)


TWO_PHASED = [
    provider
    for provider in CHATS
    for conflict in load_spec(provider).conflicts
    if conflict.patch is Patch.TWO_PHASE and conflict.only_after is None and "tools" in conflict.when
    if any(word.startswith("response_format") for word in conflict.when)
]


@pytest.mark.parametrize("provider", sorted(set(TWO_PHASED)))
def test_tools_and_a_schema_do_not_go_together(provider: str) -> None:
    sim = simulator(provider)
    both = {**USES["tools"], **USES["response_format.json_schema"]}

    assert_refused(sim, ask(sim, **both), *(c.result for c in sim.spec.conflicts if isinstance(c.result, int)))
    assert ask(sim, **USES["tools"]).status == 200


def test_a_changed_fact_changes_the_answer() -> None:
    changed = {"params": {"logit_bias": {"support": "native"}, "user": {"support": "rejected", "status": 422}}}
    sim = simulator("groq", changed)

    assert ask(sim, logit_bias={"1": 1}).status == 200
    assert ask(sim, user="u").status == 422
