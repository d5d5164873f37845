"""A later version of forewarn, with one more migration."""

import shutil
from pathlib import Path

import pytest

from forewarn.store.opening import schema

_MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision = "{new}"
down_revision = "{old}"


def upgrade():
    op.add_column("machines", sa.Column("shelf", sa.Text, nullable=False, server_default="top"))
    op.execute("{last}")
"""


def upgrade_forewarn(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    *,
    last: str = "UPDATE machines SET shelf = size WHERE size <> ''",
) -> str:
    """Add a migration that adds a column and then runs a statement; return the new schema."""
    old = schema.revisions()[-1]
    new = f"{int(old) + 1:04}"
    migrations = folder / "migrations"
    shutil.copytree(schema.MIGRATIONS, migrations)
    (migrations / "versions" / f"{new}_later.py").write_text(_MIGRATION.format(old=old, new=new, last=last))
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    return new
