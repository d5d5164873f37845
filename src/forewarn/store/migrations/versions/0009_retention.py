"""Retention: how far old records have been removed."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Keep it beside the counter."""
    op.add_column("meta", sa.Column("pruned", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("meta", sa.Column("pruned_unsaid", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("meta", sa.Column("prune_at", sa.BigInteger))
