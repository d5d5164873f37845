"""Sessions: browsers that have signed in with a token."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Begin with none: no browser could sign in."""
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "sessions",
        sa.Column("digest", name, primary_key=True),
        sa.Column("token", name, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_index("sessions_token", "sessions", ["token", "created_at"])
    op.add_column("meta", sa.Column("session_changes", sa.BigInteger, nullable=False, server_default="0"))
