"""Real machines: who speaks for what there is, and what befell machines that nobody announced."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Change one thing after another; each is a function below."""
    _keep_who_speaks_for_things()
    _count_what_nobody_announced()


def _keep_who_speaks_for_things() -> None:
    """Take all that is there as declared: it could come from nowhere else."""
    for table in ("projects", "hosts", "groups", "machines"):
        op.add_column(table, sa.Column("source", _NAME, nullable=False, server_default="declared"))


def _count_what_nobody_announced() -> None:
    """Begin with nothing: it was not noticed."""
    op.add_column("promises", sa.Column("unannounced", sa.BigInteger, nullable=False, server_default="0"))
