"""Answers: what calls with an Idempotency-Key were answered."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Begin with none: no call had a key."""
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "answers",
        sa.Column("caller", name, nullable=False),
        sa.Column("key", name, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("salt", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.Column("saved_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("caller", "key"),
    )
    op.create_index("answers_saved_at", "answers", ["saved_at"])
    op.create_index("answers_caller", "answers", ["caller", "saved_at"])
