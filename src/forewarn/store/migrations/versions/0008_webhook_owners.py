"""Webhooks that a project's own people keep."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Save the owner of each webhook; the existing ones were made by operators."""
    op.add_column("webhooks", sa.Column("owner", _NAME))
