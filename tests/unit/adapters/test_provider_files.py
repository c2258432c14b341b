"""The shipped provider files: they load quickly, agree with each other, and carry the facts the gateway needs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from adapters.registry import UnknownProviderTypeError, load_spec, provider_types, read_spec
from adapters.spec import PARAMETERS, Kind, Support
from adapters.types import FailureKind, Operation
from adapters.vocabulary import EXTENSIONS

SPEECH_ONLY = ("audio_cpp",)
CHATTING = [name for name in provider_types() if name not in SPEECH_ONLY]


def test_the_types_of_this_version_are_all_there() -> None:
    hosted = ["cerebras", "fireworks", "groq", "openai", "together"]
    engines = [
        "audio_cpp", "gpustack", "kserve", "llama_cpp_python", "llama_cpp_server", "lm_studio", "local", "localai",
        "mlx_lm", "ollama", "openai_compatible", "sglang", "tgi", "triton", "trtllm", "vllm",
    ]  # fmt: skip

    assert provider_types() == sorted(hosted + engines)
    assert [name for name in provider_types() if load_spec(name).hosted] == hosted


@pytest.mark.parametrize("name", CHATTING)
def test_every_file_says_something_about_every_parameter(name: str) -> None:
    assert set(load_spec(name).params) >= PARAMETERS - EXTENSIONS


@pytest.mark.parametrize("name", CHATTING)
def test_every_file_names_the_chat_endpoint_and_what_unknown_fields_do(name: str) -> None:
    spec = load_spec(name)

    assert spec.endpoints[Operation.CHAT].available
    assert spec.transport.unknown_body_fields.support in (
        Support.NATIVE,
        Support.IGNORED,
        Support.REJECTED,
        Support.UNKNOWN,
        Support.CONDITIONAL,
    )


@pytest.mark.parametrize("name", SPEECH_ONLY)
def test_a_speech_engine_has_no_chat_and_says_nothing_about_its_parameters(name: str) -> None:
    spec = load_spec(name)

    assert not any(spec.endpoints[operation].available for operation in Operation)
    assert not spec.params


@pytest.mark.parametrize("name", [name for name in provider_types() if load_spec(name).hosted])
def test_a_hosted_provider_has_address_key_variable_and_priced_models(name: str) -> None:
    spec = load_spec(name)

    assert spec.transport.base_url is not None
    assert spec.transport.base_url.startswith("https://")
    assert spec.transport.auth.env == f"{name.upper()}_API_KEY"
    assert not spec.transport.auth.optional
    offered = [model for model in spec.models if model.offered]
    assert offered
    assert all(model.output is not None for model in offered)
    assert not any(model.retired_on for model in offered)


@pytest.mark.parametrize("name", provider_types())
def test_a_context_overflow_is_never_told_by_the_status_alone(name: str) -> None:
    for case in load_spec(name).errors.cases:
        if case.kind is FailureKind.CONTEXT_LENGTH:
            assert case.code or case.type or case.match, case.case


@pytest.mark.parametrize("name", provider_types())
def test_phrases_to_match_are_lower_case_and_fit_the_message_they_were_taken_from(name: str) -> None:
    for case in load_spec(name).errors.cases:
        assert all(phrase == phrase.lower() for phrase in case.match)
        if case.match and case.message_like:
            assert any(phrase in case.message_like.lower() for phrase in case.match)


def test_the_local_engine_is_llama_cpp_with_its_own_differences() -> None:
    local, server = load_spec("local"), load_spec("llama_cpp_server")

    assert local.kind is Kind.IN_PROCESS
    assert local.params["logprobs"] == server.params["logprobs"]
    assert local.params["tools"] != server.params["tools"]
    assert not local.transport.keep_alive
    assert server.transport.keep_alive
    assert local.defaults == {"temperature": 1, "top_p": 1, "top_k": 0, "min_p": 0}
    assert local.errors.cases == server.errors.cases


def test_an_unknown_type_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UnknownProviderTypeError, match=r"'cerebrs' is not a provider type\. Did you mean 'cerebras'\?"):
        load_spec("cerebrs")


@pytest.mark.parametrize("name", provider_types())
def test_one_file_is_read_in_a_few_milliseconds(name: str) -> None:
    path = Path(sys.modules[load_spec.__module__].__file__ or "").parent / "providers" / f"{name}.yaml"
    best = min(_timed(path) for _ in range(5))

    assert best < 0.1, f"{best * 1000:.1f} ms; 20 ms is the aim on an idle machine"


def _timed(path: Path) -> float:
    started = time.perf_counter()
    read_spec(path)
    return time.perf_counter() - started


def test_importing_the_registry_reads_no_file() -> None:
    code = (
        "from adapters.registry import *; print(load_spec.cache_info().currsize, provider_types.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["0", "0"]
