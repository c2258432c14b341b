"""The image is built from pins, holds no secret, and runs the gateway as somebody who may do little."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
from pathlib import Path

import pytest

from gateway.cli.main import COMMANDS
from gateway.settings import Settings
from tests.judges.environments import interpreter
from tests.unit.deploy.dockerfile import Instruction, read_dockerfile

CHECKOUT = Path(__file__).resolve().parents[3]
DOCKERFILE = CHECKOUT / "deploy" / "Dockerfile"
IGNORED = (CHECKOUT / ".dockerignore").read_text().splitlines()

ARGUMENTS, STAGES = read_dockerfile(DOCKERFILE)
BUILD, FINAL = STAGES


def copied_from_checkout() -> list[str]:
    """What the build takes from the checkout."""
    copies = [copy for stage in STAGES for copy in stage.all("COPY")]
    return [
        source
        for copy in copies
        if not any(option.startswith("--from=") for option in copy.options)
        for source in copy.arguments[:-1]
    ]


def is_sent(path: str) -> bool:
    """Whether the builder is sent *path*: the last line of .dockerignore that matches it or a parent decides."""
    sent = True
    for line in IGNORED:
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        names = [path, *map(str, Path(path).parents)]
        if any(fnmatch.fnmatch(name, pattern.removeprefix("**/")) for name in (*names, Path(path).name)):
            sent = line.startswith("!")
    return sent


def runs(instructions: list[Instruction]) -> str:
    return "\n".join(one.rest for one in instructions)


def test_all_that_is_copied_exists_and_is_sent_to_the_builder() -> None:
    sources = copied_from_checkout()

    assert sources
    assert [source for source in sources if not (CHECKOUT / source).exists()] == []
    assert [source for source in sources if not is_sent(source)] == []


def test_what_may_be_secret_is_not_sent_to_the_builder() -> None:
    for path in (
        *(".git/config", ".venv/bin/python", "gateway.db", "gateway.key", "gateway.pepper", "config.yaml"),
        *("deploy/secrets/admin_key", "gateway/gateway.key", "gateway/x.db", "gateway/x.db-wal", "gateway/a.pepper"),
    ):
        assert not is_sent(path), path


def test_the_wheel_has_all_it_is_built_from() -> None:
    assert {*copied_from_checkout()} >= {
        *("gateway", "policies", "adapters", "local_engine", "migrations"),
        *("pyproject.toml", "README.md", "LICENSE", "config.example.yaml"),
    }


def test_base_images_are_slim_and_of_a_stated_version() -> None:
    assert [stage.image for stage in STAGES] == [ARGUMENTS["PYTHON_IMAGE"]] * 2
    name, _, tag = ARGUMENTS["PYTHON_IMAGE"].partition(":")
    assert name == "python"
    assert re.fullmatch(r"3\.1[1-4]-slim-[a-z]+", tag)


def test_packages_come_from_pins_with_hashes_and_nothing_is_compiled() -> None:
    installs = re.findall(r"install -q.*?(?=&&|$)", runs(BUILD.all("RUN")), re.MULTILINE)

    assert [line for line in installs if "-r requirements/" in line]
    for line in installs:
        if "/wheels/" in line:
            assert "--no-deps --no-index" in line
        else:
            assert "--require-hashes --no-deps --only-binary :all: -r requirements/" in line
    assert "--no-build-isolation" in runs(BUILD.all("RUN"))


def test_the_tools_of_the_build_stay_out_of_the_image() -> None:
    assert [copy.rest for copy in FINAL.all("COPY")] == ["--from=build /opt/switchgear /opt/switchgear"]
    assert "pip" not in runs(FINAL.all("RUN"))


def test_the_engine_finds_its_openmp_runtime_and_no_package_lists_are_left() -> None:
    run = FINAL.one("RUN").rest

    assert "--no-install-recommends libgomp1" in run
    # A base image from elsewhere may lack what empties the cache of the official ones: 90 MB.
    assert "rm -rf /var/lib/apt/lists/* /var/cache/apt/*" in run


def test_all_that_runs_is_compiled_by_what_it_says_and_not_by_its_time() -> None:
    compiles = "python -m compileall -q --invalidation-mode unchecked-hash"

    assert f"{compiles} /opt/switchgear/lib" in runs(BUILD.all("RUN"))
    assert re.search(rf"{compiles} .*stdlib", FINAL.one("RUN").rest)
    # Files that pip compiled would go by the time.
    into_the_image = [line for line in runs(BUILD.all("RUN")).split("&&") if "--python /opt/switchgear" in line]
    assert len(into_the_image) == 2
    assert all("--no-compile" in line for line in into_the_image)


def test_it_runs_as_a_numbered_user_who_owns_nothing_but_the_data() -> None:
    user, _, group = FINAL.one("USER").rest.partition(":")

    # By number, so that a cluster can see that it is not root.
    assert int(user) >= 10_000
    assert int(group) >= 10_000
    assert f"--uid {user}" in FINAL.one("RUN").rest
    assert "chown" not in DOCKERFILE.read_text()
    words = [one.word for one in FINAL.instructions]
    assert words.index("USER") > max(index for index, word in enumerate(words) if word in ("RUN", "COPY"))


def test_data_lives_in_a_volume_that_the_gateway_starts_in() -> None:
    volume = FINAL.one("VOLUME").rest

    # A database that the configuration names relatively, and the pepper, are made in the working directory.
    assert FINAL.one("WORKDIR").rest == volume
    assert Path(FINAL.environment["GATEWAY_LOCAL_DIR"]).is_relative_to(volume)
    assert f"-o switchgear -g switchgear {volume}" in FINAL.one("RUN").rest


def test_the_command_is_one_that_there_is() -> None:
    assert json.loads(FINAL.one("ENTRYPOINT").rest) == ["gateway"]
    command = json.loads(FINAL.one("CMD").rest)
    assert command[0] in COMMANDS
    assert command == ["serve", "-c", "/etc/switchgear/config.yaml"]


def test_the_health_check_asks_the_port_that_is_served() -> None:
    port = FINAL.environment["GATEWAY_SERVER__PORT"]

    assert FINAL.one("EXPOSE").rest == port
    assert f"http://127.0.0.1:{port}/health/live" in FINAL.one("HEALTHCHECK").rest
    assert FINAL.environment["GATEWAY_SERVER__HOST"] == "0.0.0.0"


def test_variables_set_in_the_image_are_settings_that_there_are() -> None:
    for name in FINAL.environment:
        if "__" in name:
            section, _, key = name.removeprefix("GATEWAY_").lower().partition("__")
            field = Settings.model_fields[section].annotation
            assert field is not None
            assert key in field.model_fields, name


def test_no_secret_and_no_package_index_stands_in_it() -> None:
    text = DOCKERFILE.read_text()

    assert not re.search(r"(?i)(secret|password|token|api_key)\s*=", text)
    assert not re.search(r"(?i)--(extra-)?index-url|--find-links|trusted-host", text)
    assert not {name for name in ARGUMENTS if re.search("(?i)key|secret|password|token", name)}
    assert set(re.findall(r"https?://([^/:'\" ]+)", text)) == {"127.0.0.1"}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_hadolint_finds_nothing(request: pytest.FixtureRequest) -> None:
    assert request.config.cache is not None
    hadolint = interpreter("hadolint", request.config.cache.mkdir("judges")).with_name("hadolint")
    run = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout + run.stderr) == (0, "")
