"""Machines that are on no host: where they were is kept, for their hypervisor may have them there."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Begin with nothing: of those that left before, nobody knows."""
    op.add_column("machines", sa.Column("last_host", _NAME))
