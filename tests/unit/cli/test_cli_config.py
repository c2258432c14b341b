"""`gateway config`: the effective configuration without secrets, and a schema that files satisfy."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from typer.testing import CliRunner

from gateway.cli.config import json_schema
from gateway.cli.main import command_app
from gateway.package_data import data_path
from gateway.settings import load_settings

SECRETS = ("gsk_secret_one", "admin-secret-two", "db-secret-three", "header-secret-four")
TEXT = f"""\
server: {{port: 9000, max_body: 1MiB}}
auth: {{admin_key: {SECRETS[1]}}}
storage: {{database_url: "postgresql+asyncpg://user:{SECRETS[2]}@db/gateway"}}
providers: {{groq: {{type: groq, api_key: {SECRETS[0]}, headers: {{x-a: {SECRETS[3]}}}}}}}
expose_provider_models: true
"""


def _show(tmp_path: Path, *arguments: str) -> str:
    path = tmp_path / "c.yaml"
    path.write_text(TEXT, encoding="utf-8")
    done = CliRunner().invoke(command_app("config"), ["show", "-c", str(path), *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_show_masks_every_secret(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    output = _show(tmp_path, *arguments)

    assert not [secret for secret in SECRETS if secret in output]
    assert "postgresql+asyncpg://user:***@db/gateway" in output
    assert "groq" in output


def test_show_has_file_environment_and_defaults_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_SERVER__WORKERS", "3")
    shown = json.loads(_show(tmp_path, "--json"))

    assert shown["server"] == {
        "host": "127.0.0.1",
        "port": 9000,
        "workers": 3,
        "request_timeout": "600s",
        "stream_keepalive": "15s",
        "max_body": "1MiB",
        "drain_timeout": "120s",
        "upstream_client": "own",
        "fetch_private_addresses": False,
    }


def test_what_show_prints_is_a_configuration_again(tmp_path: Path) -> None:
    path = tmp_path / "shown.yaml"
    path.write_text(_show(tmp_path).replace("'**********'", "something-long-enough"), encoding="utf-8")

    assert load_settings(path, environ={}).server.max_body == 1024**2


def test_the_schema_is_one_and_the_example_satisfies_it() -> None:
    validator = jsonschema_rs.validator_for(json_schema())
    example = yaml.safe_load(data_path("config.example.yaml").read_text(encoding="utf-8"))

    assert [error.message for error in validator.iter_errors(example)] == []


@pytest.mark.parametrize(
    "text",
    [
        "server: {prt: 1}",
        "server: {port: x}",
        "models: {m: {}}",
        "server: {request_timeout: 30}",
        "auth: {mode: oidc}",
        "notes: []",
    ],
)
def test_the_schema_refuses_what_the_gateway_refuses(text: str) -> None:
    assert not jsonschema_rs.validator_for(json_schema()).is_valid(yaml.safe_load(text))


def test_the_schema_lets_references_stand_for_numbers() -> None:
    text = "server: {port: '${PORT}', request_timeout: '${T:-30s}'}\ntelemetry: {metrics: '${M:-true}'}"

    assert [e.message for e in jsonschema_rs.validator_for(json_schema()).iter_errors(yaml.safe_load(text))] == []


def test_the_schema_is_printed() -> None:
    done = CliRunner().invoke(command_app("config"), ["schema"])

    assert json.loads(done.stdout) == json.loads(json.dumps(json_schema(), default=str))
