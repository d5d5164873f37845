"""Open orders and events of a key: found by an index that has the key of open ones alone."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Replace indexes of all that is open, which PostgreSQL would sometimes read whole."""
    op.drop_index("orders_host", "orders")
    op.create_index("orders_host", "orders", [_while_open("host")])
    op.drop_index("events_group", "events")
    op.create_index("events_group", "events", [_while_open("group_name"), "domain"])
    if op.get_bind().dialect.name == "postgresql":
        # It knows nothing of what a new index has before it looks, which may be long after.
        op.execute("ANALYZE orders, events")


def _while_open(key: str) -> sa.TextClause:
    return sa.text(f"CAST(CASE WHEN (ended_at IS NULL) THEN {key} END AS TEXT)")
