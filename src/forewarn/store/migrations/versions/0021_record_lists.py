"""Records by host and by group."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add indexes, so that what is listed costs as much as it shows."""
    for name, column in (("records_host", "host"), ("records_group", "group_name")):
        there = sa.text(f"{column} IS NOT NULL")
        op.create_index(name, "records", [column, "number"], sqlite_where=there, postgresql_where=there)
