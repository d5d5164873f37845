"""Places: where machines are or are being moved to, and where those of a group are."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Begin with where they are, also those that are being moved just now."""
    op.add_column("machines", sa.Column("bound_for", _NAME))
    op.add_column("machines", sa.Column("place", _NAME))
    op.execute("UPDATE machines SET place = host")
    op.create_index("machines_place", "machines", ["place", "group_name", "update_domain"])
    op.create_index("machines_group", "machines", ["group_name"])
