"""Lists: past events by their time, and orders by their host."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add indexes, so that what is listed costs as much as it shows."""
    op.create_index("events_created", "events", ["number", "id"])
    _add("events_ended", "events", "ended_at")
    _add("orders_ever_on", "orders", "host")


def _add(name: str, table: str, column: str) -> None:
    """Index the rows that have something in a column."""
    there = sa.text(f"{column} IS NOT NULL")
    op.create_index(name, table, [column], sqlite_where=there, postgresql_where=there)
