"""Tokens, and what lists of one project need."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table of tokens, and the indexes."""
    op.create_table(
        "tokens",
        sa.Column("digest", _NAME, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("project", _NAME),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
    )
    op.create_index("tokens_number", "tokens", ["number", "digest"])
    op.create_index("orders_project", "orders", ["project", "number", "id"])
    listed = sa.text("kind != 'standalone'")
    op.create_index(
        "groups_project", "groups", ["project", "name"], sqlite_where=listed, postgresql_where=listed
    )
