"""The engine: what it writes often, or must find again after a crash, has a place of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Change one thing after another; each is a function below."""
    _let_hosts_say_where_they_are_reached()


def _let_hosts_say_where_they_are_reached() -> None:
    op.add_column("hosts", sa.Column("uri", sa.Text))
    op.add_column("hosts", sa.Column("at_once", sa.Integer))
