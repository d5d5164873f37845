"""A night of maintenance: what is kept of events, orders and hosts that go through one."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Change one thing after another; each is a function below."""
    _keep_when_events_are_armed()
    _keep_who_has_ever_listened()
    _keep_steps_of_hosts()
    _let_machines_say_what_they_take()
    _forget_notices_with_records()
    _let_holds_stop_what_is_under_way()
    _keep_how_long_moves_take()


def _keep_when_events_are_armed() -> None:
    """Count what is listed as armed since its announcement: so far all of it kept others away."""
    op.add_column("events", sa.Column("armed_at", sa.BigInteger))
    op.add_column("events", sa.Column("postponed", sa.JSON(none_as_null=True)))
    op.execute(
        "UPDATE events SET armed_at = announced_at "
        "WHERE ended_at IS NULL AND type <> 'SpotRebalanceRecommendation'"
    )


def _keep_who_has_ever_listened() -> None:
    """Take the groups that are enabled, were so once, or have a machine that has polled."""
    op.add_column("groups", sa.Column("heard", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute(
        "UPDATE groups SET heard = true WHERE enabled_at IS NOT NULL "
        "OR name IN (SELECT group_name FROM records WHERE kind = 'group-enabled' AND group_name IS NOT NULL) "
        "OR name IN (SELECT group_name FROM machines JOIN machine_activity ON machine_id = id)"
    )


def _keep_steps_of_hosts() -> None:
    """Begin with none: orders did something to machines only."""
    op.add_column("orders", sa.Column("host_steps", sa.JSON, nullable=False, server_default="[]"))


def _let_machines_say_what_they_take() -> None:
    """Begin with nothing: it could not be declared."""
    for table in ("hosts", "machines"):
        for column in ("resources", "labels"):
            op.add_column(table, sa.Column(column, sa.JSON, nullable=False, server_default="{}"))
    op.add_column("machines", sa.Column("mobility", sa.Text, nullable=False, server_default="cold"))
    op.add_column("hosts", sa.Column("bare_metal", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("hosts", sa.Column("cordoned_for", _NAME))
    op.add_column("hosts", sa.Column("rack", _NAME))
    op.create_index("hosts_rack", "hosts", ["rack", "state", "carried", "name"])


def _forget_notices_with_records() -> None:
    """Find what was kept of events by them, and forget what is left of those whose records have gone."""
    op.create_index("event_machines_event", "event_machines", ["event_id"])
    op.add_column("events", sa.Column("forgotten", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute(
        "UPDATE events SET forgotten = true WHERE ended_at IS NOT NULL AND (SELECT pruned FROM meta) > 0 "
        "AND NOT EXISTS (SELECT 1 FROM records WHERE records.event_id = events.id)"
    )
    op.execute("DELETE FROM event_machines WHERE event_id IN (SELECT id FROM events WHERE forgotten)")
    op.execute("DELETE FROM notices WHERE event_id IN (SELECT id FROM events WHERE forgotten)")


def _let_holds_stop_what_is_under_way() -> None:
    """Begin with none that does: it could not be asked for."""
    op.add_column("holds", sa.Column("abort", sa.Boolean, nullable=False, server_default=sa.false()))


def _keep_how_long_moves_take() -> None:
    """Begin with nothing: what was expected of moves was not kept."""
    op.add_column("meta", sa.Column("pace", sa.JSON, nullable=False, server_default="{}"))
