"""When machines were first sent events."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables of notices and of what is counted of them."""
    op.create_table(
        "notices",
        sa.Column("event_id", _NAME, nullable=False),
        sa.Column("machine_id", _NAME, nullable=False),
        sa.Column("sent_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("event_id", "machine_id"),
    )
    op.create_table(
        "tallies",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("machines", sa.BigInteger, nullable=False),
    )
