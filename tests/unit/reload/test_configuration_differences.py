"""What a reload would change, and what it leaves for a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.reload.differences import differences, keep_until_restart
from gateway.reload.source import Source
from gateway.settings import Settings, load_settings

BASE: dict[str, Any] = {
    "version": 1,
    "auth": {"admin_key": "admin-secret-one-0123"},
    "providers": {"p": {"type": "vllm", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-secret-one-0123"}},
    "models": {"m": {"targets": [{"provider": "p", "model": "up"}]}},
}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def load(**sections: Any) -> Settings:
        file = tmp_path / "config.yaml"
        file.write_text(json.dumps({**BASE, **sections}))
        return load_settings(file, environ={})

    return load


def test_equal_configurations_differ_in_nothing(read: Any) -> None:
    assert differences(read(), read()) == ()


def test_a_difference_has_its_path_and_both_values_in_the_files_units(read: Any) -> None:
    (change,) = differences(read(), read(server={"stream_keepalive": "90s"}))

    assert (change.path, change.before, change.after) == ("server.stream_keepalive", "15s", "90s")


def test_a_changed_secret_is_a_difference_that_shows_neither_value(read: Any) -> None:
    provider = {**BASE["providers"]["p"], "api_key": "sk-secret-two-4567"}
    changes = differences(read(), read(providers={"p": provider}, auth={"admin_key": "admin-secret-two-4567"}))

    assert [change.path for change in changes] == ["auth.admin_key", "providers.p.api_key"]
    assert "secret" not in str([(change.before, change.after) for change in changes])


def test_what_is_added_is_shown_as_the_file_has_it(read: Any) -> None:
    (change,) = differences(read(), read(aliases={"gpt-4o*": "m"}))

    assert (change.path, change.before, change.after) == ("aliases.gpt-4o*", None, "m")


def test_a_target_within_a_list_is_named_by_its_place(read: Any) -> None:
    models = {"m": {"targets": [{"provider": "p", "model": "other"}]}}

    assert [change.path for change in differences(read(), read(models=models))] == ["models.m.targets[0].model"]


@pytest.mark.parametrize(
    ("sections", "kept"),
    [
        ({"server": {"port": 9}}, ("server.port",)),
        ({"server": {"host": "127.0.0.2", "workers": 2, "stream_keepalive": "9s"}}, ("server.host", "server.workers")),
        ({"storage": {"database_url": "sqlite+aiosqlite:///other.db"}}, ("storage.database_url",)),
        ({"telemetry": {"log_level": "debug"}}, ("telemetry.log_level",)),
        ({"auth": {"mode": "open"}}, ()),
    ],
)
def test_sockets_processes_and_stores_stay_until_a_restart(read: Any, sections: Any, kept: tuple[str, ...]) -> None:
    running = read()

    settings, left = keep_until_restart(running, read(**sections))

    assert left == kept
    assert settings.server.port == running.server.port
    assert settings.storage == running.storage


def test_what_stays_does_not_keep_the_rest_from_changing(read: Any) -> None:
    settings, _ = keep_until_restart(read(), read(server={"port": 9, "stream_keepalive": "9s"}, aliases={"a": "m"}))

    assert (settings.server.stream_keepalive, settings.aliases) == (9.0, {"a": "m"})


def test_a_gateway_that_others_reach_is_not_opened_by_a_file_with_another_host(read: Any) -> None:
    running = read(server={"host": "0.0.0.0"})

    settings, left = keep_until_restart(running, read(auth={"mode": "open"}))

    assert left == ("server.host", "auth.mode")
    assert settings.auth.mode == "keys"


def test_flags_win_over_the_file_at_a_reload_too(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(BASE))
    source = Source(file, {}, {"server.port": 4000})
    source.load()

    file.write_text(json.dumps({**BASE, "server": {"port": 5000}}))

    assert source.has_changed()
    assert source.load().server.port == 4000
    assert not source.has_changed()
