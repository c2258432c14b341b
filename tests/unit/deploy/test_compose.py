"""The compose file starts what the image needs, hands over secrets as files, and waits longer than the drain."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.catalog import Catalog
from gateway.config.schema import ServerSettings
from gateway.config.units import seconds
from gateway.settings import load_settings
from gateway.storage.urls import parse_database_url
from tests.judges.environments import interpreter
from tests.unit.deploy.dockerfile import read_dockerfile

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
GATEWAY: dict[str, Any] = COMPOSE["services"]["gateway"]
POSTGRES: dict[str, Any] = COMPOSE["services"]["postgres"]
SECRET = re.compile(r"\$\{file:(/run/secrets/(\w+))\}")


def test_every_name_a_service_uses_is_declared() -> None:
    for service in COMPOSE["services"].values():
        named = {mount.partition(":")[0] for mount in service["volumes"]}
        assert {name for name in named if not name.startswith(".")} <= set(COMPOSE["volumes"])
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        assert set(service["secrets"]) <= set(COMPOSE["secrets"])
        assert set(service.get("depends_on", {})) <= set(COMPOSE["services"])


def test_images_have_versions() -> None:
    for service in COMPOSE["services"].values():
        name, _, tag = service["image"].partition(":")
        assert name
        assert tag not in ("", "latest")


def test_what_is_built_is_the_dockerfile() -> None:
    context = DEPLOY / GATEWAY["build"]["context"]

    assert (context / GATEWAY["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")


def test_the_gateways_container_can_do_little() -> None:
    assert GATEWAY["read_only"] is True
    assert GATEWAY["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in GATEWAY["security_opt"]
    assert not {"privileged", "cap_add", "network_mode", "pid", "user"} & set(GATEWAY)
    # llama.cpp's socket and temporary files need a place.
    assert GATEWAY["tmpfs"][0].startswith("/tmp")


def test_only_this_machine_reaches_it_and_nobody_the_database() -> None:
    _, stages = read_dockerfile(DEPLOY / "Dockerfile")
    port = stages[-1].environment["GATEWAY_SERVER__PORT"]

    assert GATEWAY["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert "ports" not in POSTGRES
    assert COMPOSE["networks"]["back"]["internal"] is True
    assert POSTGRES["networks"] == ["back"]


def test_its_data_outlives_the_container() -> None:
    _, stages = read_dockerfile(DEPLOY / "Dockerfile")

    assert f"data:{stages[-1].one('VOLUME').rest}" in GATEWAY["volumes"]
    assert "postgres:/var/lib/postgresql/data" in POSTGRES["volumes"]


def test_it_is_not_killed_while_it_drains() -> None:
    assert seconds(GATEWAY["stop_grace_period"]) >= ServerSettings().drain_timeout + 20


def test_secrets_are_files_and_stand_nowhere_else() -> None:
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())
    text = (DEPLOY / "compose.yaml").read_text() + (DEPLOY / "config.yaml").read_text()
    assert not re.search(r"(?i)(password|key|token):\s*[\"']?[A-Za-z0-9_-]{8,}[\"']?$", text, re.MULTILINE)


def test_its_configuration_is_accepted_with_the_secrets_it_gets(tmp_path: Path) -> None:
    text = (DEPLOY / "config.yaml").read_text()
    used = {name for _, name in SECRET.findall(re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE))}
    for name in used:
        (tmp_path / name).write_text(f"{name}-0123456789abcdef\n")
    path = tmp_path / "config.yaml"
    path.write_text(text.replace("/run/secrets/", f"{tmp_path}/"))

    settings = load_settings(path, environ={})

    assert used == set(GATEWAY["secrets"])
    assert Catalog.build(settings).resolve("local") is not None
    url = parse_database_url(settings.storage.database_url.get_secret_value())
    assert not url.is_sqlite
    assert url.postgres_dsn == "postgresql://switchgear:postgres_password-0123456789abcdef@postgres/switchgear"


def test_the_database_is_the_one_the_configuration_names() -> None:
    environment = POSTGRES["environment"]

    assert environment["POSTGRES_USER"] == environment["POSTGRES_DB"] == "switchgear"
    assert environment["POSTGRES_PASSWORD_FILE"] == "/run/secrets/postgres_password"
    assert GATEWAY["depends_on"]["postgres"]["condition"] == "service_healthy"
    # The image makes the database with a server that answers on its socket alone, and starts it again after that.
    assert POSTGRES["healthcheck"]["test"][:4] == ["CMD", "pg_isready", "-h", "127.0.0.1"]


@pytest.mark.parametrize("flag", ["serve", "--migrate"])
def test_it_serves_the_mounted_configuration_and_makes_its_tables(flag: str) -> None:
    assert flag in GATEWAY["command"]
    assert f"./config.yaml:{GATEWAY['command'][2]}:ro" in GATEWAY["volumes"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_docker_compose_reads_it_as_it_is_meant(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The program itself, which needs no daemon to read a file."""
    assert request.config.cache is not None
    compose = interpreter("docker_compose", request.config.cache.mkdir("judges")).with_name("docker-compose")

    def read(file: Path) -> subprocess.CompletedProcess[str]:
        command = [str(compose), "-f", str(file), "config", "--format", "json"]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)})

    run = read(DEPLOY / "compose.yaml")
    (tmp_path / "compose.yaml").write_text(yaml.safe_dump({**COMPOSE, "volume": {}}))

    assert (run.returncode, run.stderr) == (0, "")
    told = json.loads(run.stdout)["services"]["gateway"]
    assert told["read_only"]
    assert told["cap_drop"] == ["ALL"]
    assert told["stop_grace_period"] == "2m30s"
    assert [port["host_ip"] for port in told["ports"]] == ["127.0.0.1"]
    assert read(tmp_path / "compose.yaml").returncode != 0
