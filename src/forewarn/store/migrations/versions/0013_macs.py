"""MACs: what the network interfaces of machines are known by."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Begin with none: they could not be declared."""
    op.add_column("machines", sa.Column("mac", sa.Text))
