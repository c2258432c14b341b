"""What an entry of the model list promises, and the shapes that particular clients look for."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import httpx2
import pytest

from adapters.catalogue.record import ModelKind, ModelRecord
from adapters.registry import load_spec
from adapters.spec import ModelStatus
from adapters.target import Target
from gateway.catalog import Catalog, Model
from gateway.model_entries import describe
from gateway.settings import load_settings

CODEX_FIELDS = {
    "slug", "display_name", "description", "default_reasoning_level", "supported_reasoning_levels", "shell_type",
    "visibility", "supported_in_api", "priority", "context_window", "max_context_window", "input_modalities",
    "supports_parallel_tool_calls", "truncation_policy", "support_verbosity", "default_verbosity",
    "apply_patch_tool_type", "experimental_supported_tools", "supports_reasoning_summaries", "upgrade",
    "availability_nux", "base_instructions",
}  # fmt: skip


def target(provider: str, record: ModelRecord | None = None) -> Target:
    return Target(f"{provider}/m", provider, "m", load_spec(provider), record=record)


def entry_of(*targets: Target) -> dict[str, Any]:
    return describe(Model("chat", targets))


def test_what_a_patch_makes_possible_is_promised() -> None:
    """Groq answers one choice a request and MLX enforces no schema; the gateway does both in their place."""
    supported = entry_of(target("groq"), target("mlx_lm"))["supported_parameters"]

    assert {"n", "structured_outputs", "response_format"} <= set(supported)


@pytest.mark.parametrize(("provider", "parameter"), [("groq", "logprobs"), ("ollama", "logit_bias")])
def test_what_is_refused_or_would_have_no_effect_is_not_promised(provider: str, parameter: str) -> None:
    assert parameter not in entry_of(target(provider))["supported_parameters"]
    assert parameter not in entry_of(target("vllm"), target(provider))["supported_parameters"]
    assert parameter in entry_of(target("vllm"))["supported_parameters"]


def test_parameters_of_a_providers_own_are_named_where_all_targets_have_them() -> None:
    assert "top_k" in entry_of(target("vllm"))["supported_parameters"]
    assert "top_k" not in entry_of(target("vllm"), target("groq"))["supported_parameters"]


def test_images_are_read_only_where_every_target_reads_them() -> None:
    seeing, blind = ModelRecord("m", vision=True), ModelRecord("m")

    assert entry_of(target("groq", seeing))["architecture"]["input_modalities"] == ["text", "image"]
    assert entry_of(target("groq", seeing), target("groq", blind))["architecture"]["input_modalities"] == ["text"]


@pytest.mark.parametrize(
    ("kind", "reads", "gives"),
    [
        (ModelKind.TEXT, ["text"], ["text"]),
        (ModelKind.EMBEDDING, ["text"], ["embeddings"]),
        (ModelKind.TRANSCRIPTION, ["audio"], ["text"]),
        (ModelKind.SPEECH, ["text"], ["audio"]),
    ],
)
def test_the_kind_of_a_model_tells_what_goes_in_and_comes_out(
    kind: ModelKind, reads: list[str], gives: list[str]
) -> None:
    architecture = entry_of(target("groq", ModelRecord("m", kind=kind)))["architecture"]

    assert architecture == {"input_modalities": reads, "output_modalities": gives}


def test_a_model_expires_with_the_last_of_its_targets() -> None:
    soon = ModelRecord("m", status=ModelStatus.DEPRECATED, retired_on=date(2026, 12, 11))
    later = ModelRecord("m", status=ModelStatus.DEPRECATED, retired_on=date(2027, 1, 14))

    assert entry_of(target("groq", soon), target("groq", later))["expiration_date"] == "2027-01-14"
    assert entry_of(target("groq", soon), target("groq"))["expiration_date"] is None


def test_a_limit_of_the_catalogue_is_told_where_nothing_else_limits_answers() -> None:
    assert entry_of(target("groq", ModelRecord("m", max_output_tokens=4096)))["max_output_tokens"] == 4096


def test_prices_are_strings_in_usd_a_token(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "providers: {f: {type: fireworks, api_key: k}}\n"
        "models: {m: {targets: [{provider: f, model: accounts/fireworks/models/deepseek-v4p1-flash}]}}\n"
    )
    model = Catalog.build(load_settings(path, environ={})).models["m"]

    assert describe(model)["pricing"] == {
        "prompt": "0.0000003",
        "completion": "0.0000012",
        "input_cache_read": "0.000000006",
    }


async def test_the_list_can_be_narrowed_to_what_models_give(client: httpx2.AsyncClient) -> None:
    counts = [
        len((await client.get(f"/v1/models?output_modalities={wanted}")).json()["data"])
        for wanted in ("text", "all", "audio", "text,audio")
    ]

    assert counts == [3, 3, 0, 0]


async def test_codex_finds_its_own_list_beside_the_others(client: httpx2.AsyncClient) -> None:
    answer = (await client.get("/v1/models?client_version=0.171.0")).json()

    assert [model["slug"] for model in answer["models"]] == [entry["id"] for entry in answer["data"]]
    assert [set(model) for model in answer["models"]] == [CODEX_FIELDS] * 3
    assert [model["priority"] for model in answer["models"]] == [0, 1, 2]
    assert answer["models"][0]["context_window"] == 8192
    assert answer["models"][0]["base_instructions"]


async def test_other_clients_do_not_get_the_list_of_codex(client: httpx2.AsyncClient) -> None:
    assert "models" not in (await client.get("/v1/models")).json()
