"""How often an order's announcements came to nothing since it last started anything."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Begin at none: earlier withdrawals are not counted."""
    op.add_column("orders", sa.Column("withdrawals", sa.Integer, nullable=False, server_default="0"))
