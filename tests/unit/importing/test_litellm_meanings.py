"""What single keys of a LiteLLM configuration become."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gateway.config.unbuilt import is_built
from gateway.importing.litellm import NotLiteLLMError, import_config
from gateway.importing.located import UnreadableYamlError
from gateway.importing.plan import Plan
from gateway.importing.report import Fate, Report


def run(*entries: dict[str, Any], **sections: Any) -> tuple[Plan, Report]:
    """Import *entries* of a model list, each under the name ``m`` unless it has its own, and further *sections*."""
    model_list = [
        {
            "model_name": entry.pop("name", "m"),
            **({"model_info": entry.pop("info")} if "info" in entry else {}),
            "litellm_params": entry,
        }
        for entry in entries
    ]
    return import_config(yaml.safe_dump({"model_list": model_list, **sections}, sort_keys=False))


def texts(report: Report, fate: Fate) -> str:
    return "\n".join(note.text for note in report.of(fate))


@pytest.mark.parametrize(
    ("model", "address", "kind", "called"),
    [
        ("groq/openai/gpt-oss-20b", None, "groq", "openai/gpt-oss-20b"),
        ("together_ai/meta/llama", None, "together", "meta/llama"),
        ("fireworks_ai/llama", None, "fireworks", "accounts/fireworks/models/llama"),
        ("fireworks_ai/accounts/me/models/mine", None, "fireworks", "accounts/me/models/mine"),
        ("gpt-4o", None, "openai", "gpt-4o"),
        ("openai/gpt-4o", None, "openai", "gpt-4o"),
        ("openai/own", "http://gpu:8000/v1", "openai_compatible", "own"),
        ("hosted_vllm/own", "http://gpu:8000/v1", "vllm", "own"),
        ("ollama_chat/llama3", "http://gpu:11434", "ollama", "llama3"),
        ("claude-haiku-4-5", None, "litellm_bridge", "anthropic/claude-haiku-4-5"),
        ("gemini/gemini-3", None, "litellm_bridge", "gemini/gemini-3"),
        ("somebody/some-model", None, "litellm_bridge", "somebody/some-model"),
    ],
)
def test_a_model_goes_to_the_provider_its_prefix_names(model: str, address: str | None, kind: str, called: str) -> None:
    plan, _ = run({"model": model, "api_key": "os.environ/K", **({"api_base": address} if address else {})})

    (target,) = plan.models["m"]["targets"]
    assert target["model"] == called
    assert plan.providers[target["provider"]]["type"] == kind
    assert plan.providers[target["provider"]]["api_key"] == "${K}"


def test_an_address_of_ollama_gets_the_part_that_ours_has_behind_it() -> None:
    plan, _ = run(
        {"model": "ollama/a", "api_base": "http://gpu:11434/"}, {"model": "ollama/b", "api_base": "os.environ/O"}
    )

    assert [provider["base_url"] for provider in plan.providers.values()] == ["http://gpu:11434/v1", "${O}/v1"]


def test_one_name_several_times_is_one_model_with_several_targets() -> None:
    plan, _ = run({"model": "groq/a", "api_key": "os.environ/A"}, {"model": "groq/a", "api_key": "os.environ/B"})

    assert [target["provider"] for target in plan.models["m"]["targets"]] == ["groq", "groq-2"]
    assert [provider["api_key"] for provider in plan.providers.values()] == ["${A}", "${B}"]


def test_one_key_is_one_provider() -> None:
    plan, _ = run({"model": "groq/a", "name": "a"}, {"model": "groq/b", "name": "b"})

    assert plan.providers == {"groq": {"type": "groq", "api_key": "${GROQ_API_KEY}"}}


def test_equal_secrets_are_one_variable_and_different_ones_two() -> None:
    plan, report = run(
        {"model": "groq/a", "api_key": "gsk-one"},
        {"model": "groq/b", "api_key": "gsk-two"},
        {"model": "groq/c", "api_key": "gsk-one"},
    )

    assert [provider["api_key"] for provider in plan.providers.values()] == ["${GROQ_API_KEY}", "${GROQ_API_KEY_2}"]
    assert list(report.variables) == ["GROQ_API_KEY", "GROQ_API_KEY_2"]


def test_a_secret_of_the_file_is_not_called_like_a_variable_that_means_another() -> None:
    plan, _ = run(
        {"model": "groq/a", "api_key": "gsk-in-the-file"},
        {"model": "groq/b", "api_key": "os.environ/GROQ_API_KEY"},
        {"model": "mistral/c", "api_key": "in-the-file"},
        {"model": "mistral/d"},
    )

    keys = [provider.get("api_key") or provider["env"] for provider in plan.providers.values()]
    assert keys == [
        "${GROQ_API_KEY_2}", "${GROQ_API_KEY}", "${MISTRAL_API_KEY_2}", {"MISTRAL_API_KEY": "${MISTRAL_API_KEY}"},
    ]  # fmt: skip


def test_an_address_that_may_be_signed_is_not_copied() -> None:
    plan, _ = run({"model": "azure/a", "api_base": "https://x.example/y?code=hidden", "api_key": "os.environ/K"})

    assert plan.providers["azure"]["options"] == {"api_base": "${M_BASE_URL}"}


def test_parameters_of_a_provider_behind_the_bridge_become_its_options() -> None:
    plan, _ = run({
        "model": "bedrock/claude", "aws_region_name": "us-east-1", "aws_secret_access_key": "plain-secret",
        "aws_access_key_id": "os.environ/AWS_ID",
    })  # fmt: skip

    assert plan.providers["bedrock"]["options"] == {
        "aws_region_name": "us-east-1",
        "aws_secret_access_key": "${BEDROCK_AWS_SECRET_ACCESS_KEY}",
        "aws_access_key_id": "${AWS_ID}",
    }


@pytest.mark.parametrize(("per_token", "per_million"), [(0.00000015, 0.15), ("6.0e-07", 0.6), (0, 0), (3e-6, 3)])
def test_a_price_by_the_token_becomes_one_by_the_million(per_token: Any, per_million: float) -> None:
    plan, _ = run({"model": "groq/a"} | {"info": {"input_cost_per_token": per_token, "output_cost_per_token": 0}})

    assert plan.models["m"]["targets"][0]["price"] == {"input": per_million, "output": 0}


def test_the_order_of_deployments_is_the_order_of_targets() -> None:
    plan, _ = run({"model": "groq/second", "order": 2}, {"model": "groq/first", "order": 1})

    assert [target["model"] for target in plan.models["m"]["targets"]] == ["first", "second"]


def test_retries_and_times_are_those_of_the_deployment_before_those_of_the_file() -> None:
    plan, _ = run(
        {"name": "own", "model": "groq/a", "max_retries": 1, "timeout": 5, "stream_timeout": 0.5},
        {"name": "common", "model": "groq/b"},
        litellm_settings={"num_retries": 4, "request_timeout": 600},
        router_settings={"num_retries": 2, "timeout": 30},
    )

    assert plan.models["own"]["retries"] == {"attempts": 2}
    assert plan.models["own"]["timeouts"] == {"total": "5s", "first_event": "500ms"}
    assert plan.models["common"]["retries"] == {"attempts": 3}
    assert plan.models["common"]["timeouts"] == {"total": "30s"}


def test_drop_params_drops() -> None:
    plan, _ = run({"model": "groq/a"}, litellm_settings={"drop_params": True})

    assert plan.models["m"]["unsupported"] == "drop"


def test_drop_params_lets_the_library_drop_what_only_it_knows_of() -> None:
    plan, _ = run(
        {"model": "gemini/a", "drop_params": True}, {"model": "mistral/b"}, {"model": "groq/c", "drop_params": True}
    )

    assert plan.providers["gemini"]["options"] == {"drop_params": True}
    assert "options" not in plan.providers["mistral"]
    assert "options" not in plan.providers["groq"]


def test_aliases_are_other_names() -> None:
    alias = {"a": "m", "b": {"model": "m", "hidden": True}, "m": "m", "c": "nowhere"}

    plan, report = run({"model": "groq/a"}, router_settings={"model_group_alias": alias})

    assert plan.aliases == {"a": "m", "b": "m"}
    assert "alias 'm'" in texts(report, Fate.DROPPED)
    assert "alias 'c'" in texts(report, Fate.DROPPED)


@pytest.mark.parametrize(
    ("settings", "pattern", "value"),
    [
        ({"fallbacks": [{"m": ["spare"]}]}, ("models", "*", "fallback"), ["spare"]),
        ({"default_fallbacks": ["spare"]}, ("models", "*", "fallback"), ["spare"]),
        ({"context_window_fallbacks": [{"*": ["spare"]}]}, ("models", "*", "fallback_on", "context_length"), ["spare"]),
    ],
)
def test_fallbacks_are_written_once_they_are_built(
    settings: dict[str, Any], pattern: tuple[str, ...], value: Any
) -> None:
    plan, report = run({"model": "groq/a"}, {"name": "spare", "model": "groq/b"}, litellm_settings=settings)

    place: Any = plan.models["m"]
    for key in pattern[2:]:
        place = place.get(key, {})
    if is_built(pattern, value):
        assert place == value
    else:
        assert place == {}
        assert "spare" in texts(report, Fate.NOT_YET)


def test_deployments_share_the_load_by_their_weights() -> None:
    plan, report = run({"model": "groq/a", "weight": 3}, {"model": "groq/b"}, {"name": "one", "model": "groq/c"})

    assert plan.models["m"]["route"] == {"strategy": "weighted"}
    assert [target.get("weight") for target in plan.models["m"]["targets"]] == [3, None]
    assert "route" not in plan.models["one"]
    assert "weight 3" in texts(report, Fate.MAPPED)


def test_an_order_comes_before_any_lot() -> None:
    plan, report = run(
        {"model": "groq/a", "order": 1, "weight": 3}, {"model": "groq/b", "order": 1}, {"model": "groq/c", "order": 2}
    )

    assert "route" not in plan.models["m"]
    assert [target.get("weight") for target in plan.models["m"]["targets"]] == [None, None, None]
    assert "weight 3" in texts(report, Fate.DROPPED)
    assert "the same 'order'" in texts(report, Fate.APPROXIMATED)


def test_the_strategy_is_written_once_it_is_built() -> None:
    plan, report = run(
        {"model": "groq/a", "weight": 3}, {"model": "groq/b"}, router_settings={"routing_strategy": "least-busy"}
    )

    if is_built(("models", "*", "route", "strategy"), "least_busy"):
        assert plan.models["m"]["route"] == {"strategy": "least_busy"}
    else:
        assert "least_busy" in texts(report, Fate.NOT_YET)


def test_a_wildcard_becomes_the_models_that_are_known() -> None:
    plan, _ = run({"name": "groq/*", "model": "groq/*"}, {"name": "anthropic/*", "model": "anthropic/*"})

    assert "groq/openai/gpt-oss-120b" in plan.models
    assert plan.models["groq/openai/gpt-oss-120b"]["targets"][0]["model"] == "openai/gpt-oss-120b"
    assert not [name for name in plan.models if name.startswith("anthropic/")]


@pytest.mark.parametrize("text", ["just words", "- a", "a: 1", "{}"])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(NotLiteLLMError):
        import_config(text)


def test_a_syntax_error_names_its_line_and_quotes_nothing() -> None:
    with pytest.raises(UnreadableYamlError, match="line 3") as refused:
        import_config('model_list:\n  a: "hidden-secret\n  b: c')

    assert "hidden-secret" not in str(refused.value)


def test_aliases_that_multiply_are_refused() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(UnreadableYamlError, match="aliases"):
        import_config("\n".join(["model_list: []", *rows]))
