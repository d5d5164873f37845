"""Removed hosts: their names are kept, for reasons in old records have them."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Take the names from the records that tell of removals."""
    op.execute(
        sa.text(
            "INSERT INTO tombstones (kind, key, number) "
            "SELECT 'hosts', host, max(number) FROM records "
            "WHERE kind = 'host-removed' AND host IS NOT NULL GROUP BY host"
        )
    )
