"""Webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table of webhooks."""
    op.create_table(
        "webhooks",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("project", _NAME),
        sa.Column("kinds", sa.JSON, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("delivered", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("failing_since", sa.BigInteger),
        sa.Column("error", sa.Text, nullable=False),
    )
    op.create_index("webhooks_number", "webhooks", ["number", "id"])
