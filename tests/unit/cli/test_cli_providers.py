"""`gateway providers`: every type in a table, and one page for each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from adapters.registry import load_spec, preset_types, provider_types
from gateway.cli.main import command_app

EVERY = sorted((*provider_types(), *preset_types()))


def _run(*arguments: str) -> str:
    done = CliRunner().invoke(command_app("providers"), list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def _json(*arguments: str) -> Any:
    return json.loads(_run(*arguments, "--json"))


def _line(page: str, start: str) -> str:
    """The line of *page* whose first word is *start*, with one space between its words."""
    [found] = [" ".join(line.split()) for line in page.splitlines() if line.split()[:1] == [start]]
    return found


def test_the_list_has_a_line_for_each_type() -> None:
    head, *lines = _run("list").splitlines()

    assert head.split() == ["TYPE", "NAME", "KIND", "INHERITS", "BASE", "URL", "KEY", "IN", "VERIFIED", "AS", "OF"]
    assert [line.split()[0] for line in lines] == EVERY


def test_the_list_tells_where_a_type_listens_and_how_well_it_is_known() -> None:
    page = _run("list")

    assert _line(page, "groq") == (
        "groq Groq (GroqCloud) hosted - https://api.groq.com/openai/v1 GROQ_API_KEY documented 2026-11-30"
    )
    assert _line(page, "tabbyapi") == (
        "tabbyapi TabbyAPI engine exllamav2 http://127.0.0.1:5000/v1 - documented 2026-11-30"
    )
    assert _line(page, "ypipe") == "ypipe YPipe engine openai_compatible - - assumed 2026-11-30"


def test_the_columns_stand_under_their_heads() -> None:
    head, *lines = _run("list").splitlines()
    places = [head.index(title) for title in ("NAME", "KIND", "INHERITS", "BASE URL", "KEY IN", "VERIFIED", "AS OF")]

    assert all(line[place - 1] == " " and line[place] != " " for line in lines for place in places)


def test_the_list_as_json_says_the_same() -> None:
    rows = _json("list")

    assert [row["type"] for row in rows] == EVERY
    [row] = [row for row in rows if row["type"] == "exo"]
    assert row == {
        "type": "exo",
        "name": "exo",
        "kind": "engine",
        "inherits": "openai_compatible",
        "base_url": "http://127.0.0.1:52415/v1",
        "env": None,
        "verified": "documented",
        "as_of": "2026-11-30",
    }


def test_the_bundled_engine_has_no_address_to_show() -> None:
    [row] = [row for row in _json("list") if row["type"] == "local"]

    assert (row["kind"], row["base_url"]) == ("in_process", None)


@pytest.mark.parametrize("name", EVERY)
def test_every_type_has_a_page(name: str) -> None:
    page, spec = _run("show", name), load_spec(name)

    assert page.startswith(f"{name}  {spec.name}\n")
    assert f"as of {spec.as_of}" in page
    assert spec.note is None or spec.note in page
    assert "\x1b" not in page


def test_a_page_tells_what_becomes_of_each_parameter_and_where_that_was_read() -> None:
    page = _run("show", "gpt4all")

    assert _line(page, "temperature") == "temperature native - limited; 0 to 2 [gpt4all_code]"
    assert _line(page, "max_completion_tokens") == (
        "max_completion_tokens patched to max_tokens renamed [gpt4all_code]"
    )
    assert _line(page, "tools") == "tools patched emulate_tools rejected [gpt4all_code]"
    assert _line(page, "logit_bias") == "logit_bias refused error rejected [gpt4all_code]"
    assert _line(page, "seed") == "seed dropped dropped rejected [gpt4all_code]"
    assert "  gpt4all_code  nomic-ai/gpt4all, gpt4all-chat/src/server.cpp at cd70db2" in page


def test_a_page_tells_endpoints_messages_and_what_does_not_go_together() -> None:
    page = _run("show", "mlc_llm")

    assert _line(page, "embeddings") == "embeddings native /embeddings"
    assert _line(page, "developer_role") == "developer_role rejected; map_to_system"
    assert _line(page, "single_system") == "single_system only in front"
    assert "top_logprobs + no_logprobs  422  set_logprobs" in page


def test_a_page_tells_models_with_prices_and_status() -> None:
    page = _run("show", "groq")

    assert _line(page, "openai/gpt-oss-120b").startswith("openai/gpt-oss-120b gpt-oss-120b 131072 65536 0.15 0.6 0.075")
    assert _line(page, "llama-3.3-70b-versatile").endswith("retired")


def test_a_page_says_what_helps_where_an_endpoint_is_not_there() -> None:
    assert "name it type: mlx_lm" in _line(_run("show", "claude_code_local"), "chat_completions")


def test_a_page_as_json_has_the_facts_and_what_becomes_of_them() -> None:
    facts = _json("show", "lorax")

    assert (facts["type"], facts["kind"], facts["verified"], facts["inherits"]) == (
        "lorax",
        "engine",
        "documented",
        "tgi",
    )
    assert facts["parameters"]["stop"]["form"] == "array"
    assert facts["parameters"]["logprobs"]["handling"] == "refused"
    assert facts["parameters"]["n"]["actions"] == ["split"]
    assert facts["facts"]["adapters"]["named_by"] == "model"
    assert set(facts["sources"]) >= {"lorax_docs", "lorax_code"}


def test_prices_in_json_are_exact() -> None:
    [model] = [model for model in _json("show", "groq")["models"] if model["id"] == "openai/gpt-oss-120b"]

    assert (model["in"], model["out"], model["cached_in"]) == ("0.15", "0.6", "0.075")


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_an_unknown_type_is_wrong_usage_and_answered_with_the_nearest(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(command_app("providers"), ["show", "koboldcp", *arguments])

    assert done.exit_code == 2
    assert "'koboldcp' is not a provider type. Did you mean 'koboldcpp'?" in done.stderr
    assert done.stdout == ""
