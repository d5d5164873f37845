"""What projects declare: windows, blackout days, rehearsals; and what more rollouts are asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make room for it; a project that declared nothing still does."""
    op.add_column("projects", sa.Column("settings", sa.JSON, nullable=False, server_default="{}"))
    op.add_column("rollouts", sa.Column("terms", sa.JSON, nullable=False, server_default="{}"))
