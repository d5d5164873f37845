"""Drivers: who does the work, for each host and for the fleet."""

import logging

import sqlalchemy as sa
from alembic import op

log = logging.getLogger(__name__)

revision = "0014"
down_revision = "0013"

SAID = (
    'this fleet does not say who does the work: [defaults] driver = "simulated" is written for it, so that '
    "nothing is really done, as until now; once a fleet file that leaves it out is applied, orders wait for "
    "those who do the work"
)


def upgrade() -> None:
    """Have a fleet that is there simulated on: until now that was what orders were when nobody said more."""
    op.add_column("hosts", sa.Column("driver", sa.Text))
    where = sa.text("driver IS NOT NULL")
    op.create_index("hosts_driver", "hosts", ["driver", "name"], sqlite_where=where, postgresql_where=where)
    op.add_column("meta", sa.Column("defaults", sa.JSON, nullable=False, server_default="{}"))
    if op.get_bind().execute(sa.text("SELECT name FROM hosts LIMIT 1")).first() is not None:
        op.execute("""UPDATE meta SET defaults = '{"driver": "simulated"}'""")
        log.warning("%s", SAID)
