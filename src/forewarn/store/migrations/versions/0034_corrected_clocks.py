"""What the system's clock showed when the service last ran, while service time is ahead of it."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Begin with nothing: a server that is ahead says so at its next look."""
    op.add_column("meta", sa.Column("system_at", sa.BigInteger))
