"""A provider file is read, or refused with file and line; what it says by model and by condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.registry import SpecError, load_spec
from adapters.spec import Condition, ConditionKind, Patch, Support
from adapters.spec_conflicts import read_condition
from adapters.vocabulary import ToolCallIds
from tests.unit.adapters.provider_file import GOOD, read_acme


def test_a_right_file_is_read(tmp_path: Path) -> None:
    spec = read_acme(tmp_path, GOOD)

    assert spec.params["max_completion_tokens"].to == "max_tokens"
    assert spec.params["n"].patch is Patch.FAN_OUT
    assert spec.transport.auth.header_value("k") == "Bearer k"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("kind: hosted", "knd: hosted", "4:1  knd", "'knd' is not a known key here. Did you mean 'kind'?"),
        ("fan_out", "fan_oot", "17:40  params.n.patch", "'fan_oot' is not allowed here. Did you mean 'fan_out'?"),
        ("  n: {", "  nn: {", "17:3  params.nn", "'nn' is not a parameter. Did you mean 'n'?"),
        ("support: limited", "support: limitd", "17:16  params.n.support", "'limitd' is not allowed here."),
        (", src: [transport]", "", "17:6  params.n", "'src' is missing"),
        ("[transport]", "[doc]", "17:55  params.n.src[0]", "'doc' is not in 'sources'. Did you mean 'docs'?"),
        ("renamed, to: max_tokens", "renamed", "16:26  params.max_completion_tokens", "'renamed' needs 'to'"),
        ("max: 1,", "mx: 1,", "17:25  params.n.mx", "'mx' is not a known key here."),
        ("id: acme", "id: other", "2:5  id", "the id has to be the file's name, 'acme'"),
        ("kind: hosted", "inherits: no\nkind: hosted", "4:11  inherits", "there is no provider file 'no.yaml'"),
        ("as_of: 2026-11-30", "as_of: lately", "5:8  as_of", "found 'lately'; "),
        ("base_url:", "base_uri:", "7:3  transport.base_uri", "Did you mean 'base_url'?"),
        (
            "chat_completions:",
            "chat_completion:",
            "11:3  endpoints.chat_completion",
            "Did you mean 'chat_completions'?",
        ),
        (
            "bytes}",
            "byte}",
            "13:44  messages.content_parts.image_url",
            "'byte' is not allowed here. Did you mean 'bytes'?",
        ),
        ("[unique_tool", "[uniqe_tool", "14:11  messages.rules[0]", "Did you mean 'unique_tool_call_ids'?"),
        ("[tools,", "[tolls,", "19:13  conflicts[0].when[0]", "'tolls' is not a parameter. Did you mean 'tools'?"),
        (
            '"no_stream"',
            '"no_streem"',
            "19:20  conflicts[0].when[1]",
            "'streem' is not a parameter. Did you mean 'stream'?",
        ),
        ("model~big", "modle~big", "19:33  conflicts[0].when[2]", "models are told by model~name"),
        ("two_phase", "two_faces", "19:67  conflicts[0].patch", "Did you mean 'two_phase'?"),
        ("[stop, eos]", "[stop, eso]", "20:32  finish_reason.values[1]", "OpenAI has no 'eso'"),
        ("{eos: stop}", "{eos: stopp}", "20:57  finish_reason.nonstandard.eos", "Did you mean 'stop'?"),
        (
            "envelope: flat",
            "envelope: flatt",
            "21:20  errors.envelope",
            "'flatt' is not allowed here. Did you mean 'flat'?",
        ),
        ("sources:", "lineage: [x]\nsources:", "22:1  lineage", "this follows from 'inherits'; leave it out"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(tmp_path: Path, old: str, new: str, place: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(SpecError) as caught:
        read_acme(tmp_path, GOOD.replace(old, new, 1))

    report = str(caught.value)
    assert f"acme.yaml:{place}\n" in report
    assert message in report


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read_acme(
            tmp_path, GOOD.replace("fan_out", "fan").replace("kind: hosted", "kind: rented").replace("[docs]", "[doc]")
        )

    assert [problem.path for problem in caught.value.problems] == [
        "params.max_completion_tokens.src[0]",
        "kind",
        "params.n.patch",
    ]


@pytest.mark.parametrize(
    ("word", "condition"),
    [
        ("tools", Condition(ConditionKind.USED, "tools")),
        ("response_format.json_schema", Condition(ConditionKind.USED, "response_format.json_schema")),
        ("no_stream", Condition(ConditionKind.UNUSED, "stream")),
        ("reasoning_format=raw", Condition(ConditionKind.IS, "reasoning_format", ("raw",))),
        ("tool_choice=forced", Condition(ConditionKind.IS, "tool_choice", ("required", "named"))),
        ("reasoning_effort!=none", Condition(ConditionKind.IS_NOT, "reasoning_effort", ("none",))),
        ("n>1", Condition(ConditionKind.OVER, "n", ("1",))),
        ("a.enable_thinking:string", Condition(ConditionKind.TEXT, "a.enable_thinking", ("string",))),
        ("model~gpt-oss|qwen3.8", Condition(ConditionKind.MODEL, "model", ("gpt-oss", "qwen3.8"))),
    ],
)
def test_a_word_of_a_conflict_is_read_as_a_condition(word: str, condition: Condition) -> None:
    assert read_condition(word) == condition


@pytest.mark.parametrize("word", ["", "two words", "tools~x", "model=x", "n:number", "tools=", "Tools"])
def test_what_is_no_condition_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not a condition"):
        read_condition(word)


def test_facts_by_model_go_by_the_longest_prefix_of_the_canonical_name() -> None:
    groq = load_spec("groq")
    effort = groq.params["reasoning_effort"]

    assert effort.values_for("qwen3.8-27b") == ("none", "default", "low", "medium", "high")
    assert effort.values_for("qwen3-32b") == ("none", "default")
    assert effort.values_for("llama-3.3-70b") == ()
    assert groq.reasoning.tags_for("qwen3-32b") == {"<think>": "</think>"}
    assert groq.reasoning.tags_for("gpt-oss-20b") == {}
    assert groq.reasoning.switch_for("gpt-oss-20b") == {}
    assert load_spec("vllm").messages.ids_for("mistral-7b-instruct-v0.3") is ToolCallIds.NINE_ALPHANUMERIC
    assert load_spec("vllm").messages.ids_for("qwen3-8b") is None
    assert load_spec("openai").params["reasoning_effort"].values_for("gpt-5-mini")[0] == "minimal"


@pytest.mark.parametrize(
    ("provider", "model", "canonical"),
    [
        ("groq", "openai/gpt-oss-120b", "gpt-oss-120b"),
        ("cerebras", "zai-glm-4.7", "glm-4.7"),
        ("fireworks", "accounts/fireworks/models/qwen3p9-plus", "qwen3.9-plus"),
        ("vllm", "Qwen/Qwen3.8-27B", "qwen3.8-27b"),
    ],
)
def test_a_models_id_tells_its_canonical_name(provider: str, model: str, canonical: str) -> None:
    assert load_spec(provider).canonical(model) == canonical


def test_what_a_listed_model_lacks_is_emulated_or_left_to_the_class_of_the_parameter() -> None:
    openai = load_spec("openai")
    model = next(model for model in openai.models if model.id == "o3")
    params = openai.for_model(model).params

    assert (params["stop"].support, params["stop"].patch) == (Support.REJECTED, Patch.CLIENT_SIDE_STOP)
    assert (params["temperature"].support, params["temperature"].patch) == (Support.REJECTED, None)
    assert params["seed"].support is not Support.REJECTED
