"""The tables, in what SQLite and PostgreSQL have in common.

Times are integers of milliseconds since 1970 (portable to group and compare), money is integer nano-USD, and nothing
refers to another table by a foreign key: a row of the log outlives what it speaks of. Migrations only ever add,
so that the version before still runs on the new schema.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()

# none_as_null: an absent list is SQL NULL, not the JSON value null, which no query would think of.
_json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""``api_keys`` counts the changes of that table. Its row is updated in the same transaction as the change, which
makes writers queue up behind each other: numbers become visible in the order in which they were given."""

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("models", _json),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger),
    Column("revoked_at_ms", BigInteger),
    Column("changed_seq", BigInteger, nullable=False),
    Column("organisation_id", Text),
    Column("team_id", Text),
    Column("user_id", Text),
    Index("ix_api_keys_digest", "digest", unique=True),
    Index("ix_api_keys_changed_seq", "changed_seq"),
    Index("ix_api_keys_created_at_ms_id", "created_at_ms", "id"),
)

# No index but the key's, whose values sort by time: each would be paid for by every request, so it comes with the query
# that needs it.
requests = Table(
    "requests",
    metadata,
    Column("id", Text, primary_key=True),
    Column("request_id", Text, nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("key_id", Text),
    Column("organisation_id", Text),
    Column("team_id", Text),
    Column("user_id", Text),
    Column("endpoint", Text, nullable=False),
    Column("model", Text),
    Column("provider", Text),
    Column("target", Text),
    Column("status", Integer, nullable=False),
    Column("error_code", Text),
    Column("stream", Boolean, nullable=False),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("estimated", Boolean, nullable=False),
    Column("cost_nusd", BigInteger),
    Column("ttft_ms", Double),
    Column("total_ms", Double, nullable=False),
    Column("overhead_ms", Double),
    Column("adjusted", Text),
    Column("client_ip", Text),
    Column("attempts", _json, nullable=False),
    Column("tags", _json),
)
