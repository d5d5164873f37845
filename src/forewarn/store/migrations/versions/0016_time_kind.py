"""Time: whose a store lives in; and whether it is a backup that was not served yet."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Begin with what is known: nothing; a backup of an older store has been marked, though."""
    known = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("meta")}
    op.add_column("meta", sa.Column("time_kind", sa.Text))
    if "backup_of" not in known:
        op.add_column("meta", sa.Column("backup_of", sa.BigInteger))
