"""Keys, the request log, and the small tables they need."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

_json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "settings",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    counters = op.create_table(
        "counters",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(counters, [{"name": "api_keys", "value": 0}])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("prefix", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("models", _json),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger),
        sa.Column("revoked_at_ms", sa.BigInteger),
        sa.Column("changed_seq", sa.BigInteger, nullable=False),
        sa.Column("organisation_id", sa.Text),
        sa.Column("team_id", sa.Text),
        sa.Column("user_id", sa.Text),
    )
    op.create_index("ix_api_keys_digest", "api_keys", ["digest"], unique=True)
    op.create_index("ix_api_keys_changed_seq", "api_keys", ["changed_seq"])
    op.create_index("ix_api_keys_created_at_ms_id", "api_keys", ["created_at_ms", "id"])
    op.create_table(
        "requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("key_id", sa.Text),
        sa.Column("organisation_id", sa.Text),
        sa.Column("team_id", sa.Text),
        sa.Column("user_id", sa.Text),
        sa.Column("endpoint", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("provider", sa.Text),
        sa.Column("target", sa.Text),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("error_code", sa.Text),
        sa.Column("stream", sa.Boolean, nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.Column("cached_tokens", sa.BigInteger),
        sa.Column("reasoning_tokens", sa.BigInteger),
        sa.Column("estimated", sa.Boolean, nullable=False),
        sa.Column("cost_nusd", sa.BigInteger),
        sa.Column("ttft_ms", sa.Double),
        sa.Column("total_ms", sa.Double, nullable=False),
        sa.Column("overhead_ms", sa.Double),
        sa.Column("adjusted", sa.Text),
        sa.Column("client_ip", sa.Text),
        sa.Column("attempts", _json, nullable=False),
        sa.Column("tags", _json),
    )
