"""What becomes of a parameter is told by what the gateway does with a request, not by what a file seems to say."""

from __future__ import annotations

import pytest

from adapters.handling import Handling, Outcome, outcomes
from adapters.registry import load_spec, preset_types, provider_types
from adapters.types import Action
from adapters.vocabulary import EXTENSIONS, PARAMETERS


@pytest.mark.parametrize(
    ("provider", "param", "handling", "actions"),
    [
        ("openai_compatible", "logit_bias", Handling.NATIVE, ()),
        ("groq", "logit_bias", Handling.REFUSED, ()),
        ("groq", "store", Handling.DROPPED, (Action.DROPPED,)),
        ("groq", "n", Handling.PATCHED, (Action.SPLIT,)),
        ("groq", "web_search_options", Handling.BY_MODEL, ()),
        ("vllm", "metadata", Handling.IGNORED, ()),
        ("exo", "max_completion_tokens", Handling.PATCHED, (Action.RENAMED,)),
        ("exo", "stream_options.include_usage", Handling.NATIVE, ()),
        ("mlxcel", "response_format.json_schema", Handling.NATIVE, ()),
        ("exllamav2", "response_format.json_schema", Handling.PATCHED, (Action.EMULATED,)),
        ("gpt4all", "stream", Handling.PATCHED, (Action.EMULATED,)),
        ("gpt4all", "tools", Handling.PATCHED, (Action.EMULATED,)),
        ("gpt4all", "tool_choice", Handling.PATCHED, (Action.EMULATED,)),
        ("run_anywhere", "stop", Handling.PATCHED, (Action.EMULATED,)),
        ("run_anywhere", "seed", Handling.DROPPED, (Action.DROPPED,)),
    ],
)
def test_a_parameter_is_handled_as_its_target_would(
    provider: str, param: str, handling: Handling, actions: tuple[Action, ...]
) -> None:
    assert outcomes(load_spec(provider))[param] == Outcome(handling, actions)


@pytest.mark.parametrize("name", sorted({*provider_types(), *preset_types()} - {"audio_cpp"}))
def test_every_type_has_an_outcome_for_every_parameter(name: str) -> None:
    assert set(outcomes(load_spec(name))) >= PARAMETERS - EXTENSIONS
