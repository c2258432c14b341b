"""Tens of thousands of requests made from our own description: no failure of ours, no breach, no way past the keys."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import KEY
from tests.fuzz.fuzzed import ADMIN_KEY, Fuzzed, fuzzed_gateway
from tests.fuzz.fuzzer import Report, fuzz
from tests.judges.environments import interpreter

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

# What is sound by the description may still be refused: by the target, or since a cursor leads nowhere.
_NOT_ASKED = "positive_data_acceptance"

FailsNowhere = Callable[..., Coroutine[Any, Any, Report]]


@pytest.fixture
def schemathesis(request: pytest.FixtureRequest) -> Path:
    """The command, in an environment of its own: it wants an older jsonschema-rs than the gateway."""
    assert request.config.cache is not None
    python = interpreter("schemathesis", request.config.cache.mkdir("judges"))
    return python.with_name("schemathesis")


async def _run(command: Path, fuzzed: Fuzzed, folder: Path, examples: int, *options: str) -> Report:
    most = ("--max-examples", str(examples), "--no-shrink")
    return await fuzz(command, fuzzed.description, fuzzed.url, folder, *most, *options)


def _answered_well(report: Report, paths: str) -> set[str]:
    """The operations under *paths* that were answered with success at least once."""
    return {operation for (operation, status) in report.statuses if status < 300 and paths in operation}


@pytest.fixture
def fails_nowhere(schemathesis: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> FailsNowhere:
    """Fuzzes the paths that fit an expression with a key that opens them, and sees that nothing of ours goes wrong."""

    async def run(paths: str, key: str, examples: int, *options: str) -> Report:
        asking = ("--header", f"Authorization: Bearer {key}", "--include-path-regex", paths)
        async with fuzzed_gateway() as fuzzed:
            report = await _run(schemathesis, fuzzed, tmp_path, examples, *asking, *options)
            assert report.exit_code == 0, report.printed
            assert await fuzzed.server_errors() == []
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
        return report

    return run


async def test_the_data_plane_fails_nowhere(fails_nowhere: FailsNowhere) -> None:
    options = ("--exclude-checks", _NOT_ASKED, "--phases", "coverage,fuzzing")
    report = await fails_nowhere("^/v1/", KEY, 3500, *options)

    assert report.cases >= 12_000
    assert _answered_well(report, "/v1/") == {
        *("POST /v1/chat/completions", "POST /v1/completions", "POST /v1/embeddings"),
        *("GET /v1/models", "GET /v1/models/{model_id}"),
    }


async def test_the_operators_plane_fails_nowhere(fails_nowhere: FailsNowhere) -> None:
    # A key that was revoked is still shown, with the time of it.
    options = ("--exclude-checks", f"{_NOT_ASKED},use_after_free", "--phases", "coverage,fuzzing,stateful")
    report = await fails_nowhere("^/(admin|health|metrics)", ADMIN_KEY, 2500, *options)

    assert report.cases >= 8_000
    assert _answered_well(report, "/admin/keys") >= {"POST /admin/keys", "GET /admin/keys"}


async def test_made_up_credentials_open_nothing(schemathesis: Path, tmp_path: Path) -> None:
    async with fuzzed_gateway() as fuzzed:
        report = await _run(
            schemathesis,
            fuzzed,
            tmp_path,
            150,
            *("--generation-with-security-parameters", "true", "--phases", "coverage,fuzzing"),
            *("--exclude-checks", _NOT_ASKED),
        )

        keyed = {
            f"{method.upper()} {path}"
            for path, operations in fuzzed.description["paths"].items()
            for method, operation in operations.items()
            if operation["security"]
        }
        assert report.exit_code == 0, report.printed
        assert keyed
        assert {operation for (operation, status) in report.statuses if status < 400} & keyed == set()
        assert {status for (operation, status) in report.statuses if operation in keyed} >= {401}
        assert fuzzed.upstream.requests == []
        assert [record.key.name for record in await fuzzed.gateway.services.keys.page(limit=10)] == ["test"]
