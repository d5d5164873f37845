"""Policies of groups, terms of orders, deferred events, holds."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make room for what operators and groups may ask for."""
    op.add_column("groups", sa.Column("policy", sa.JSON, nullable=False, server_default="{}"))
    op.add_column("orders", sa.Column("terms", sa.JSON, nullable=False, server_default="{}"))
    op.add_column("events", sa.Column("rule", sa.Text, nullable=False, server_default="any"))
    op.add_column("events", sa.Column("deferred", sa.JSON))
    op.create_table(
        "holds",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("project", _NAME),
        sa.Column("host", _NAME),
    )
