"""The engine: what it writes often, or must find again after a crash, has a place of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Change one thing after another; each is a function below."""
    _let_hosts_say_where_they_are_reached()
    _keep_activity_apart()
    _forget_old_removals()
    _judge_promises_at_the_end()
    _keep_when_orders_were_heard_of()
    _keep_when_webhooks_are_called_again()
    _tell_what_need_not_be_read()
    _keep_rehearsals()


def _let_hosts_say_where_they_are_reached() -> None:
    """Begin with nothing: it could not be declared."""
    op.add_column("hosts", sa.Column("uri", sa.Text))
    op.add_column("hosts", sa.Column("at_once", sa.Integer))


def _keep_activity_apart() -> None:
    """Take what is known of groups that are enabled, and of machines that have polled."""
    op.create_table(
        "group_activity",
        sa.Column("group_name", _NAME, primary_key=True),
        sa.Column("last_active", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "machine_activity",
        sa.Column("machine_id", _NAME, primary_key=True),
        sa.Column("last_seen", sa.BigInteger, nullable=False),
    )
    op.execute(
        "INSERT INTO group_activity SELECT name, silent_since FROM groups WHERE silent_since IS NOT NULL"
    )
    op.execute("INSERT INTO machine_activity SELECT id, last_seen FROM machines WHERE last_seen IS NOT NULL")
    op.create_index("group_activity_oldest", "group_activity", ["last_active", "group_name"])
    op.drop_index("groups_silent", "groups")
    op.drop_column("groups", "silent_since")
    op.drop_column("groups", "last_active")
    op.drop_column("machines", "last_seen")


def _forget_old_removals() -> None:
    """Forget what readers of the feed have long learnt of."""
    op.add_column("meta", sa.Column("forgotten", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE meta SET forgotten = number - 100000 WHERE number > 100000")
    op.execute(
        "DELETE FROM tombstones "
        "WHERE kind IN ('machines', 'groups') AND number <= (SELECT forgotten FROM meta)"
    )


def _judge_promises_at_the_end() -> None:
    """Keep which events are judged: so far those were that had started, and they are not judged again."""
    op.add_column("events", sa.Column("judged", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute("UPDATE events SET judged = true WHERE started_at IS NOT NULL AND ended_at IS NULL")


def _keep_when_orders_were_heard_of() -> None:
    """Begin with nothing: what is not known begins to count with the next start."""
    op.add_column("orders", sa.Column("heard_at", sa.BigInteger))


def _keep_when_webhooks_are_called_again() -> None:
    """Begin with nothing: those that fail are called when a server starts, as they always were."""
    op.add_column("webhooks", sa.Column("next_try", sa.BigInteger))


def _tell_what_need_not_be_read() -> None:
    """Count the rollouts that wait for something."""
    op.add_column("meta", sa.Column("settings_version", sa.Text, nullable=False, server_default=""))
    op.add_column("meta", sa.Column("blocked_rollouts", sa.Integer, nullable=False, server_default="0"))
    op.execute(
        "UPDATE meta SET blocked_rollouts = "
        "(SELECT count(*) FROM rollouts WHERE ended_at IS NULL AND blocked)"
    )


def _keep_rehearsals() -> None:
    """Begin with none: they were kept in memory, and ended with their server."""
    op.create_table(
        "rehearsals",
        sa.Column("project", _NAME, nullable=False),
        sa.Column("id", _NAME, nullable=False),
        sa.Column("scenario", sa.Text, nullable=False),
        sa.Column("machines", sa.JSON, nullable=False),
        sa.Column("faults", sa.JSON, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("begun_at", sa.BigInteger, nullable=False),
        sa.Column("renewed_at", sa.BigInteger, nullable=False),
        sa.Column("ended_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "id"),
    )
