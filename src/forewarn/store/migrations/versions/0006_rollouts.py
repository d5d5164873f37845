"""Rollouts."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_OPEN = sa.text("ended_at IS NULL")


def upgrade() -> None:
    """Make room for rollouts."""
    op.create_table(
        "rollouts",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("work", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("hosts", sa.JSON, nullable=False),
        sa.Column("hosts_at_once", sa.Integer, nullable=False),
        sa.Column("gap", sa.BigInteger, nullable=False),
        sa.Column("aborting", sa.Boolean, nullable=False),
        sa.Column("waves", sa.JSON, nullable=False),
        sa.Column("given_up", sa.JSON, nullable=False),
        sa.Column("waiting", sa.JSON, nullable=False),
        sa.Column("blocked", sa.Boolean, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("due_at", sa.BigInteger),
    )
    op.create_index("rollouts_number", "rollouts", ["number", "id"])
    op.create_index(
        "rollouts_open",
        "rollouts",
        ["due_at", "number"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
