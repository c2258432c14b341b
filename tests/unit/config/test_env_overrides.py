"""The environment and the command line lie over the file: which wins, and how their mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.settings import ConfigError, load_settings

FILE = """\
server: {host: 127.0.0.2, port: 1000, workers: 2}
providers: {GPU: {type: vllm}}
models: {m: {targets: [{provider: GPU, model: x}]}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(FILE, encoding="utf-8")
    return file


def test_flags_win_over_the_environment_over_the_file_over_defaults(path: Path) -> None:
    environ = {"GATEWAY_SERVER__PORT": "2000", "GATEWAY_SERVER__WORKERS": "3"}
    settings = load_settings(path, environ=environ, flags={"server.port": 3000, "server.host": None})

    assert settings.server.port == 3000
    assert settings.server.workers == 3
    assert settings.server.host == "127.0.0.2"
    assert settings.server.request_timeout == 600.0


def test_the_short_names_are_understood(path: Path) -> None:
    settings = load_settings(
        None,
        environ={
            "GATEWAY_CONFIG": str(path),
            "GATEWAY_ADMIN_KEY": "an-admin-key-of-mine",
            "GATEWAY_DATABASE_URL": "sqlite+aiosqlite:///x.db",
            "GATEWAY_LOG_LEVEL": "DEBUG",
        },
    )

    assert settings.source == str(path)
    assert settings.auth.admin_key is not None
    assert settings.auth.admin_key.get_secret_value() == "an-admin-key-of-mine"
    assert settings.storage.database_url.get_secret_value() == "sqlite+aiosqlite:///x.db"
    assert settings.telemetry.log_level == "debug"


def test_the_long_name_wins_over_the_short_one(path: Path) -> None:
    environ = {"GATEWAY_LOG_LEVEL": "error", "GATEWAY_TELEMETRY__LOG_LEVEL": "warning"}

    assert load_settings(path, environ=environ).telemetry.log_level == "warning"


def test_a_provider_is_found_whatever_its_case(path: Path) -> None:
    settings = load_settings(path, environ={"GATEWAY_PROVIDERS__GPU__MAX_CONCURRENCY": "4"})

    assert settings.providers["GPU"].max_concurrency == 4
    assert list(settings.providers) == ["GPU"]


@pytest.mark.parametrize("key", ["12345", "true", "null", '{"a": 1}', "1e5"])
def test_a_key_that_looks_like_json_stays_the_text_it_is(path: Path, key: str) -> None:
    settings = load_settings(path, environ={"GATEWAY_PROVIDERS__GPU__API_KEY": key})

    assert settings.providers["GPU"].keys == (key,)


def test_mappings_and_lists_are_written_as_json(path: Path) -> None:
    settings = load_settings(path, environ={"GATEWAY_ALIASES": '{"a": "m"}'})

    assert settings.aliases == {"a": "m"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"GATEWAY_SERVER__PORT": "x"}, "GATEWAY_SERVER__PORT  server.port\n  found 'x'; a whole number is expected"),
        ({"GATEWAY_SERVER__PROT": "1"}, "GATEWAY_SERVER__PROT  server.prot\n  'prot' is not a known key here."),
        ({"GATEWAY_SERVR__PORT": "1"}, "GATEWAY_SERVR__PORT\n  'servr' is not a section of the configuration."),
        ({"GATEWAY_ALIASES": "{nope"}, "GATEWAY_ALIASES\n  a mapping or a list is expected here, written as JSON"),
        ({"GATEWAY_LOG_LEVEL": "loud"}, "GATEWAY_LOG_LEVEL  telemetry.log_level\n  'loud' is not allowed here."),
        ({"GATEWAY_LIMITS__PER_KEY": "1"}, "GATEWAY_LIMITS__PER_KEY  limits\n  'limits' is not built yet"),
        ({"GATEWAY_ADMIN_KEY": "short"}, "GATEWAY_ADMIN_KEY  auth.admin_key\n  the key is shorter than 16 characters"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_environment_names_the_variable(path: Path, environ: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ=environ)

    assert expected in caught.value.render()


def test_a_mistake_in_a_flag_names_the_flag(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--port  server\.port\n  found '99999'; at most 65535 is expected"):
        load_settings(path, environ={}, flags={"server.port": 99999})


def test_variables_of_other_parts_of_the_gateway_are_left_alone(path: Path) -> None:
    load_settings(path, environ={"GATEWAY_KEY_PEPPER": "x", "GATEWAY_SOMETHING": "y", "SERVER__PORT": "1"})


def test_the_process_environment_is_not_read_behind_the_callers_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_SERVER__PORT", "4000")
    monkeypatch.setenv("SERVER", "{}")

    assert load_settings(path, environ={}).server.port == 1000
