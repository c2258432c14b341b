"""One stream, one format, no secrets, whoever logs."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import structlog

from gateway.request_id import new_request_id
from gateway.storage.request_row import AttemptRow, RequestRow
from gateway.telemetry.logging import (
    close_logging,
    configure_logging,
    lines_dropped,
    log_requests,
    register_secret,
)

ROW = RequestRow(
    request_id="req_1",
    started_at_ms=1_000,
    key_id="key_1",
    organisation_id=None,
    team_id=None,
    user_id=None,
    endpoint="chat_completions",
    model="chat",
    provider="groq",
    target="groq/llama",
    status=200,
    error_code=None,
    stream=True,
    prompt_tokens=10,
    completion_tokens=20,
    cost_nusd=1_500_000,
    ttft_ms=12.5,
    total_ms=40.0,
    overhead_ms=0.4,
    adjusted="n=split",
    attempts=(AttemptRow("groq/llama", None, 200, 0.1, 39.0),),
)

CANARIES = (
    "gw-canary0123456789abcdefghijkl",
    "sk-canary0123456789",
    "gsk_canary0123456789",
    "csk-canary0123456789",
    "fw_canary0123456789",
    "registered/canary+secret",
)


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    close_logging()
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def written(out: io.StringIO) -> list[dict[str, Any]]:
    close_logging()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_structlog_and_the_standard_library_write_the_same_json_lines() -> None:
    out = io.StringIO()
    configure_logging("json", "info", out)
    structlog.get_logger("one").info("hello", number=1)
    logging.getLogger("uvicorn.error").warning("hello %s", "there", extra={"number": 2})

    first, second = written(out)

    assert (first["event"], first["level"], first["logger"], first["number"]) == ("hello", "info", "one", 1)
    assert (second["event"], second["level"], second["logger"]) == ("hello there", "warning", "uvicorn.error")
    assert second["number"] == 2
    assert first.keys() == second.keys()


def test_lines_below_the_level_are_not_written() -> None:
    out = io.StringIO()
    configure_logging("json", "warning", out)
    structlog.get_logger().info("no")
    logging.getLogger("gateway").info("no")
    log_requests([ROW])
    structlog.get_logger().warning("yes")

    assert [line["event"] for line in written(out)] == ["yes"]


def test_the_request_line_tells_the_whole_story() -> None:
    out = io.StringIO()
    configure_logging("json", "info", out)
    log_requests([ROW])

    (line,) = written(out)

    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "event": "request",
        "request_id": "req_1",
        "key_id": "key_1",
        "endpoint": "chat_completions",
        "model": "chat",
        "provider": "groq",
        "target": "groq/llama",
        "attempts": 1,
        "status": 200,
        "stream": True,
        "ttft_ms": 12.5,
        "total_ms": 40.0,
        "overhead_ms": 0.4,
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "cost_usd": 0.0015,
        "adjusted": "n=split",
    }


def test_requests_that_ended_together_get_a_line_each() -> None:
    out = io.StringIO()
    configure_logging("json", "info", out)
    secret = "sk-canary0123456789"
    own = new_request_id()
    ids = [own, f"{own}1", "theirs", f"{own.rpartition('_')[0]}_{secret}"]
    log_requests([msgspec.structs.replace(ROW, request_id=given) for given in ids])
    log_requests([])

    lines = written(out)

    assert [line["request_id"] for line in lines[:3]] == ids[:3]
    assert secret not in lines[3]["request_id"]
    assert len(lines) == 4


def test_a_request_that_cannot_be_told_costs_no_other_its_line() -> None:
    out = io.StringIO()
    configure_logging("json", "info", out)
    log_requests([ROW, msgspec.structs.replace(ROW, target="half a pair \ud800"), ROW])

    assert [line["event"] for line in written(out)] == ["request", "a request line could not be made", "request"]


def test_a_terminal_gets_lines_for_people() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    configure_logging("auto", "info", out)
    log_requests([ROW])
    try:
        raise ValueError("broken\x1b[2J")
    except ValueError:
        logging.getLogger("gateway").exception("it failed")
    close_logging()

    text = out.getvalue()
    assert "groq/llama" in text
    assert "Traceback" in text
    assert "\x1b[2J" not in text
    with pytest.raises(json.JSONDecodeError):
        json.loads(text.splitlines()[0])


def test_whatever_is_no_terminal_gets_json() -> None:
    out = io.StringIO()
    configure_logging("auto", "info", out)
    structlog.get_logger().info("hello")

    assert written(out)[0]["event"] == "hello"


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize("secret", CANARIES)
def test_a_planted_secret_reaches_no_line(log_format: Any, secret: str) -> None:
    register_secret("registered/canary+secret")
    out = io.StringIO()
    configure_logging(log_format, "debug", out)
    log = structlog.get_logger("canary")
    log.info(f"in the event {secret}", url=f"http://u:{secret}@host/?api_key={secret}", nested={"a": [secret.encode()]})
    log.warning("as a key", **{secret: 1})
    log.info("a config", config={"providers": {"groq": {"api_key": secret}}})
    logging.getLogger("sqlalchemy.engine").error("connect %s failed", f"postgresql://u:{secret}@db/x")
    logging.getLogger("alembic").error("extra", extra={"header": f"Authorization: Bearer {secret}"})
    try:
        raise RuntimeError(f"upstream said: Incorrect API key provided: {secret}")
    except RuntimeError as error:
        log.exception("it failed", error=error)
        logging.getLogger("uvicorn.error").exception("%r", error)
    log_requests([msgspec.structs.replace(ROW, request_id=secret, model=secret)])
    close_logging()

    assert len(out.getvalue()) > 500
    assert secret not in out.getvalue()
    assert secret.encode().hex() not in out.getvalue()
    assert "canary0123456789" not in out.getvalue()


def test_a_client_cannot_forge_a_line() -> None:
    out = io.StringIO()
    configure_logging("console", "info", out)
    logging.getLogger("gateway").warning("bad model %s", 'x"\n2026-11-30T00:00:00Z [error] forged')
    close_logging()

    assert len(out.getvalue().splitlines()) == 1


def test_libraries_that_tell_every_statement_are_kept_quiet() -> None:
    out = io.StringIO()
    configure_logging("json", "debug", out)
    for name in ("sqlalchemy.engine.Engine", "aiosqlite", "uvicorn.access", "httpcore2.connection"):
        logging.getLogger(name).info("INSERT INTO requests %s", "values")
    logging.getLogger("gateway").debug("ours")

    assert [line["event"] for line in written(out)] == ["ours"]


def test_configuring_again_replaces_the_stream() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging("json", "info", first)
    structlog.get_logger().info("one")
    configure_logging("json", "info", second)
    structlog.get_logger().info("two")

    assert [line["event"] for line in written(second)] == ["two"]
    assert json.loads(first.getvalue())["event"] == "one"


def test_before_it_is_configured_nothing_is_logged_and_nothing_breaks() -> None:
    close_logging()
    log_requests([ROW])

    assert lines_dropped() == 0
