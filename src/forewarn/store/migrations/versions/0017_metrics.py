"""Metrics: what should have started first is found at once, and broken promises are counted."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Count the promises that the history says were broken."""
    listed = sa.text("ended_at IS NULL")
    op.drop_index("events_status", "events")
    op.create_index(
        "events_status", "events", ["status", "not_before"], sqlite_where=listed, postgresql_where=listed
    )
    op.execute(
        sa.text(
            "INSERT INTO tallies (kind, machines) "
            "SELECT kind, count(*) FROM records WHERE kind = 'promise-broken' GROUP BY kind"
        )
    )
