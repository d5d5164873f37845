"""Presence: when the service ran, and when guests first heard of an order."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Begin with what is known: the service ran when it last saved something."""
    op.add_column("meta", sa.Column("present_at", sa.BigInteger))
    op.add_column("meta", sa.Column("beats", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("meta", sa.Column("absences", sa.JSON, nullable=False, server_default="[]"))
    op.execute("UPDATE meta SET present_at = reached")
    op.add_column("orders", sa.Column("announced_at", sa.BigInteger))
    op.execute(
        "UPDATE orders SET announced_at ="
        " (SELECT min(events.announced_at) FROM events WHERE events.order_id = orders.id)"
    )
