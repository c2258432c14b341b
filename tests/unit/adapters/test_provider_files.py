"""The shipped provider files: they load quickly, agree with each other, and carry the facts the gateway needs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adapters.registry import (
    DIRECTORY,
    UnknownProviderTypeError,
    load_spec,
    preset_types,
    provider_types,
    read_spec,
)
from adapters.spec import FROM_TRANSPORT, PARAMETERS, Kind, Patch, Support
from adapters.types import FailureKind, Operation
from adapters.vocabulary import EXTENSIONS
from gateway.config.zero import KEY_VARIABLES

ALL = [*provider_types(), *preset_types()]
SPEECH_ONLY = ("audio_cpp",)
CHATTING = [name for name in provider_types() if name not in SPEECH_ONLY]


def test_the_types_of_this_version_are_all_there() -> None:
    hosted = ["cerebras", "fireworks", "groq", "openai", "together"]
    engines = [
        "audio_cpp", "gpustack", "kserve", "litellm_bridge", "llama_cpp_python", "llama_cpp_server", "lm_studio",
        "local", "localai", "mlx_lm", "ollama", "openai_compatible", "sglang", "tgi", "triton", "trtllm", "vllm",
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
    started = time.process_time()
    read_spec(path)
    return time.process_time() - started


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_has_a_source_that_is_told(name: str) -> None:
    spec = load_spec(name)

    for param, facts in spec.params.items():
        assert facts.src, param
        assert set(facts.src) <= spec.sources.keys() | {FROM_TRANSPORT}, param


@pytest.mark.parametrize("name", ALL)
def test_the_headers_of_limits_are_all_listed_so_that_none_reaches_a_client(name: str) -> None:
    told = load_spec(name).rate_limit_headers

    for limit in told.limits:
        assert {header for header in (limit.limit, limit.remaining, limit.reset) if header} <= set(told.headers)


@pytest.mark.parametrize("name", ALL)
def test_only_parameters_it_may_be_sent_stand_among_its_defaults_and_switches(name: str) -> None:
    spec = load_spec(name)
    sendable = {param.partition(".")[0] for param in spec.params} | set(spec.extra_params)
    sent = {*spec.defaults, *spec.reasoning.off, *spec.context.ask_for_error}

    if spec.transport.unknown_body_fields.only_known:
        assert sent <= sendable


def test_every_patch_word_is_needed_by_a_file() -> None:
    used: set[Patch | None] = set()
    for name in ALL:
        spec = load_spec(name)
        said = spec.messages
        used |= {entry.patch for entry in spec.params.values()}
        used |= {conflict.patch for conflict in spec.conflicts}
        used |= {case.patch for case in spec.errors.cases}
        roles = (said.developer_role, said.mid_conversation_system)
        members = (said.name, said.empty_tool_calls, said.cache_control)
        used |= {entry.patch for entry in (*roles, *members) if entry is not None}

    assert set(Patch) <= used


def test_no_provider_is_named_in_code_but_in_quirks_and_lists_of_them() -> None:
    root = DIRECTORY.parent.parent
    # Where keys are looked for, and which tables of the documentation have which columns.
    allowed = {root / "gateway" / "config" / "zero.py", root / "gateway" / "cli" / "provider_matrix.py"}
    # The protocol, the bundled engine, the bridge and the generic type are no provider's names.
    names = set(ALL) - {"openai", "openai_compatible", "local", "litellm_bridge"}
    quoted = re.compile(rf"""["'](?:{"|".join(map(re.escape, sorted(names)))})["']""")
    files = [*(root / "adapters").rglob("*.py"), *(root / "gateway").rglob("*.py"), *(root / "policies").rglob("*.py")]

    for file in files:
        if file in allowed or file.is_relative_to(root / "adapters" / "quirks"):
            continue
        assert not quoted.findall(file.read_text(encoding="utf-8")), file


def test_the_keys_looked_for_in_the_environment_are_those_the_hosted_files_name() -> None:
    named = {name: load_spec(name).transport.auth.env for name in provider_types() if load_spec(name).hosted}

    assert named == KEY_VARIABLES


def test_importing_the_registry_reads_no_file() -> None:
    code = (
        "from adapters.registry import *; print(load_spec.cache_info().currsize, provider_types.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["0", "0"]
