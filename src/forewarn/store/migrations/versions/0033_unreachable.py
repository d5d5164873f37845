"""Hosts that cannot be reached: since when, so that no machine is sent there."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0027"


def upgrade() -> None:
    """Begin with none: drivers tell within seconds which cannot be reached."""
    op.add_column("hosts", sa.Column("unreachable_since", sa.BigInteger))
    away = sa.text("unreachable_since IS NOT NULL")
    op.create_index("hosts_unreachable", "hosts", ["name"], sqlite_where=away, postgresql_where=away)
