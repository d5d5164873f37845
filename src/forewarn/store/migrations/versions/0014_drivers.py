"""Drivers: who does the work, for each host and for the fleet."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Have a fleet that is there simulated on: until now that was what orders were when nobody said more."""
    op.add_column("hosts", sa.Column("driver", sa.Text))
    op.add_column("meta", sa.Column("defaults", sa.JSON, nullable=False, server_default="{}"))
    op.execute("""UPDATE meta SET defaults = '{"driver": "simulated"}' WHERE EXISTS (SELECT 1 FROM hosts)""")
