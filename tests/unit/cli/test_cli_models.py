"""`gateway models` and `gateway explain`, as a person and a script see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.main import command_app
from tests.fakes.price_snapshot import LISTED

CONFIG = """\
providers:
  groq: {type: groq, api_key: gsk_secret}
  gpu: {type: vllm, base_url: "http://127.0.0.1:1/v1"}
models:
  chat:
    targets:
      - {provider: groq, model: openai/gpt-oss-120b}
      - {provider: gpu, model: m, context_window: 2000, price: {input: 10, output: 20}, traits: {region: eu}}
aliases: {gpt-4o: chat}
"""


@pytest.fixture
def config(home: Path) -> str:
    path = home / "c.yaml"
    path.write_text(CONFIG)
    return str(path)


def run(command: str, *arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(command_app(command), list(arguments))
    assert done.exit_code == code, done.output
    return done


def words(line: str) -> list[str]:
    return line.split()


def test_a_configured_model_has_a_line_for_each_target(config: str) -> None:
    head, groq, gpu = run("models", "list", "-c", config).stdout.splitlines()

    assert words(head)[:4] == ["MODEL", "TARGET", "CONTEXT", "OUTPUT"]
    assert words(groq)[:7] == ["chat", "groq/openai/gpt-oss-120b", "131072", "65536", "0.15", "0.6", "0.075"]
    assert words(groq)[7:] == ["tools", "schema", "served", "groq.yaml", "(2026-11-30)"]
    assert words(gpu)[:7] == ["chat", "gpu/m", "2000", "-", "10", "20", "-"]
    assert words(gpu)[-1] == "configuration"


def test_listing_is_what_the_command_does_without_a_word(config: str) -> None:
    assert run("models", "-c", config).stdout == run("models", "list", "-c", config).stdout
    run("models", "-c", config, "list", code=2)


@pytest.mark.usefixtures("home", "price_snapshot")
def test_the_whole_catalogue_holds_models_of_our_files_and_of_the_snapshot() -> None:
    rows = {row["target"]: row for row in json.loads(run("models", "list", "--all", "--json").stdout)}

    assert rows["groq/openai/gpt-oss-120b"]["price_from"].startswith("groq.yaml")
    assert rows[f"together/{LISTED.id}"]["price_from"].startswith("litellm")
    assert rows["groq/whisper-large-v3"]["price"] == {"an hour of sound": "0.111"}
    assert rows["groq/llama-3.3-70b-versatile"]["state"] == "retired"
    assert rows["groq/llama-3.3-70b-versatile"]["successor"]


@pytest.mark.parametrize("name", ["chat", "gpt-4o"])
def test_one_model_is_shown_with_all_its_targets(config: str, name: str) -> None:
    page = run("models", "show", name, "-c", config).stdout

    assert "groq/openai/gpt-oss-120b" in page
    assert "input 10, output 20 USD" in page


def test_the_words_of_the_operator_about_a_target_are_shown(config: str) -> None:
    groq, gpu = json.loads(run("models", "show", "chat", "-c", config, "--json").stdout)

    assert (groq["traits"], gpu["traits"]) == ({}, {"region": "eu"})
    assert "  traits     region eu" in run("models", "show", "chat", "-c", config).stdout


def test_a_model_of_the_catalogue_is_shown_at_every_provider_or_at_one(home: Path) -> None:
    several = json.loads(run("models", "show", "gpt-oss-120b", "--json").stdout)
    one = json.loads(run("models", "show", "cerebras/gpt-oss-120b", "--json").stdout)

    assert {row["target"].partition("/")[0] for row in several} >= {"groq", "cerebras", "together"}
    assert [row["target"] for row in one] == ["cerebras/gpt-oss-120b"]


def test_an_unknown_model_is_answered_with_its_like(config: str) -> None:
    assert "chat" in run("models", "show", "chap", "-c", config, code=2).stderr
    assert "chat" in run("explain", "chap", "-c", config, code=2).stderr


def explained(config: str, body: Any, *arguments: str, code: int = 0, name: str = "p.json") -> Any:
    path = Path(name)
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    done = run("explain", "chat", "--params", name, "-c", config, "--json", *arguments, code=code)
    return json.loads(done.stdout)


def test_a_request_is_explained_without_its_prompt_being_given(config: str) -> None:
    page = run("explain", "gpt-4o", "-c", config).stdout

    assert page.index("1. groq/openai/gpt-oss-120b  eligible") < page.index("2. gpu/m  eligible")
    assert "groq.yaml (2026-11-30)" in page
    assert "gsk_secret" not in page


def test_the_explanation_for_scripts_holds_order_changes_cost_and_body(config: str) -> None:
    told = explained(config, {"logit_bias": {"5": 1}, "max_tokens": 100})

    gpu, groq = told["targets"]
    assert (gpu["target"], gpu["place"], gpu["verdict"]) == ("gpu/m", 1, "eligible")
    assert (groq["place"], groq["verdict"]) == (None, "refused")
    assert gpu["body"]["model"] == "m"
    assert gpu["most_cost_usd"] == f"{(gpu['prompt_tokens'] * 10 + 100 * 20) / 1e6:.6f}".rstrip("0")
    assert told["refusal"] is None


def test_parameters_may_come_in_yaml(config: str) -> None:
    told = explained(config, "max_tokens: 7\nuser: me\n", name="p.yaml")

    assert told["targets"][0]["most_output_tokens"] == 7


def test_what_is_done_about_missing_parameters_can_be_chosen(config: str) -> None:
    told = explained(config, {"logit_bias": {"5": 1}}, "--unsupported", "drop")

    groq = next(one for one in told["targets"] if one["target"].startswith("groq/"))
    assert "logit_bias=dropped" in groq["adjusted"]


def test_a_request_that_no_target_takes_ends_with_the_clients_error(config: str, home: Path) -> None:
    Path(config).write_text(CONFIG.replace("      - {provider: gpu", "      # - {provider: gpu"))

    told = explained(config, {"logit_bias": {"5": 1}}, code=1)

    assert "logit_bias" in told["refusal"]


@pytest.mark.parametrize(
    ("body", "code"), [("{", 1), ('{"temperature": "hot"}', 1), ('{"messages": []}', 1), ("[1]", 1)]
)
def test_a_body_that_no_client_may_send_is_told_as_such(config: str, body: str, code: int) -> None:
    Path("p.json").write_text(body)

    done = run("explain", "chat", "--params", "p.json", "-c", config, code=code)

    assert "a client would be told: 400" in done.stderr


def test_a_file_that_is_not_there_is_wrong_usage(config: str) -> None:
    run("explain", "chat", "--params", "nowhere.json", "-c", config, code=2)
