"""Rows of the request log, and which of them are stored."""

from __future__ import annotations

from msgspec.structs import replace
from sqlalchemy import select

from gateway.storage.database import Database
from gateway.storage.request_row import AttemptRow, RequestRow
from gateway.storage.tables import requests

FULL = RequestRow(
    request_id="req-1",
    started_at_ms=1_796_030_000_000,
    key_id="key_1",
    organisation_id="org",
    team_id="team",
    user_id="user",
    endpoint="chat_completions",
    model="gpt-oss-120b",
    provider="groq",
    target="groq/openai/gpt-oss-120b",
    status=200,
    error_code=None,
    stream=True,
    prompt_tokens=10,
    completion_tokens=5,
    cached_tokens=3,
    reasoning_tokens=2,
    estimated=True,
    cost_nusd=9_000_000_000_000,
    ttft_ms=12.5,
    total_ms=480.25,
    overhead_ms=0.125,
    adjusted="logit_bias=dropped",
    client_ip="127.0.0.1",
    attempts=(
        AttemptRow("groq/a", "rate_limited", 429, 0.5, 20.0),
        AttemptRow("groq/b", None, 200, 21.0, 400.0, 10, 5, 3, 2, True, 42, "n=split"),
    ),
    tags=("blue", "zwölf"),
)


def numbered(number: int) -> RequestRow:
    return replace(FULL, request_id=f"req-{number}", started_at_ms=FULL.started_at_ms + number)


async def stored_ids(database: Database) -> list[str]:
    async with database.read() as connection:
        return list((await connection.scalars(select(requests.c.request_id).order_by(requests.c.id))).all())
