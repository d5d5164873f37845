"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _partial(name: str, table: str, columns: list[str], *, only: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(only), postgresql_where=sa.text(only))


def upgrade() -> None:
    """Make all tables."""
    _make_meta()
    _make_fleet()
    _make_machines()
    _make_orders()
    _make_events()
    _make_records()


def _make_meta() -> None:
    op.create_table(
        "meta",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("reached", sa.BigInteger),
        sa.Column("grace_until", sa.BigInteger),
        sa.Column("grace_announced_before", sa.BigInteger),
        sa.Column("applied_fleet", sa.Text),
        sa.Column("lineage", sa.Text, nullable=False),
    )
    op.create_table(
        "tombstones",
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("key", _NAME, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("kind", "key"),
    )
    op.create_index("tombstones_number", "tombstones", ["kind", "number"])


def _make_fleet() -> None:
    op.create_table("projects", sa.Column("name", _NAME, primary_key=True))
    op.create_table(
        "hosts",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("carried", sa.Integer, nullable=False, server_default="0"),
    )
    op.create_index("hosts_room", "hosts", ["state", "carried", "name"])
    op.create_table(
        "groups",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("project", _NAME, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("update_domains", sa.Integer, nullable=False),
        sa.Column("born", sa.BigInteger, nullable=False),
        sa.Column("incarnation", sa.BigInteger, nullable=False),
        sa.Column("enabled_at", sa.BigInteger),
        sa.Column("ready_at", sa.BigInteger),
        sa.Column("last_active", sa.BigInteger),
        sa.Column("silent_since", sa.BigInteger),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
    )
    op.create_index("groups_changed", "groups", ["changed"])
    _partial("groups_listed", "groups", ["name"], only="kind != 'standalone'")
    _partial("groups_ready", "groups", ["ready_at"], only="ready_at IS NOT NULL")
    _partial("groups_silent", "groups", ["silent_since", "name"], only="silent_since IS NOT NULL")


def _make_machines() -> None:
    op.create_table(
        "machines",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("key", _NAME, nullable=False),
        sa.Column("project", _NAME, nullable=False),
        sa.Column("group_name", _NAME, nullable=False),
        sa.Column("host", _NAME),
        sa.Column("update_domain", sa.Integer, nullable=False),
        sa.Column("fault_domain", sa.Integer, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("network", _NAME, nullable=False),
        sa.Column("address", _NAME),
        sa.Column("port", sa.Integer),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("size", sa.Text, nullable=False),
        sa.Column("os", sa.Text, nullable=False),
        sa.Column("last_seen", sa.BigInteger),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("project", "key", name="machines_name"),
        sa.UniqueConstraint("network", "address", name="machines_address"),
        sa.UniqueConstraint("port", name="machines_port"),
    )
    op.create_index("machines_key", "machines", ["key"])
    op.create_index("machines_host", "machines", ["host"])
    op.create_index("machines_state", "machines", ["state"])
    op.create_index("machines_changed", "machines", ["changed"])


def _make_orders() -> None:
    op.create_table(
        "orders",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("work", sa.Text),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("project", _NAME),
        sa.Column("machine", _NAME),
        sa.Column("machine_name", _NAME),
        sa.Column("host", _NAME),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("driver", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("stages", sa.JSON, nullable=False),
        sa.Column("waiting", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("due_at", sa.BigInteger),
    )
    op.create_index("orders_number", "orders", ["number", "id"])
    op.create_index("orders_state", "orders", ["state", "number", "id"])
    _partial("orders_open", "orders", ["state", "source", "project"], only="ended_at IS NULL")
    _partial("orders_host", "orders", ["host"], only="ended_at IS NULL")
    _partial("orders_due", "orders", ["due_at", "number"], only="due_at IS NOT NULL")
    _make_side_table("order_machines", "machine_id")
    _make_side_table("order_waits", "group_name")


def _make_side_table(name: str, column: str) -> None:
    op.create_table(
        name,
        sa.Column(column, _NAME, nullable=False),
        sa.Column("order_id", _NAME, nullable=False),
        sa.PrimaryKeyConstraint(column, "order_id"),
    )
    op.create_index(f"{name}_order", name, ["order_id"])


def _make_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("order_id", _NAME, nullable=False),
        sa.Column("stage", sa.Integer, nullable=False),
        sa.Column("group_name", _NAME, nullable=False),
        sa.Column("domain", sa.Integer, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("duration_seconds", sa.BigInteger, nullable=False),
        sa.Column("resources", sa.JSON, nullable=False),
        sa.Column("announced_at", sa.BigInteger, nullable=False),
        sa.Column("not_before", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("approvals", sa.JSON, nullable=False),
    )
    op.create_table(
        "event_machines",
        sa.Column("machine_key", _NAME, nullable=False),
        sa.Column("event_id", _NAME, nullable=False),
        sa.PrimaryKeyConstraint("machine_key", "event_id"),
    )
    op.create_index("events_order", "events", ["order_id"])
    _partial("events_group", "events", ["group_name", "domain"], only="ended_at IS NULL")
    _partial("events_number", "events", ["number", "id"], only="ended_at IS NULL")
    _partial("events_status", "events", ["status"], only="ended_at IS NULL")


def _make_records() -> None:
    op.create_table(
        "records",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("project", _NAME),
        sa.Column("group_name", _NAME),
        sa.Column("host", _NAME),
        sa.Column("machine", _NAME),
        sa.Column("machine_key", _NAME),
        sa.Column("event_id", _NAME),
        sa.Column("order_id", _NAME),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index("records_at", "records", ["at", "number"])
    op.create_index("records_project", "records", ["project", "number"])
    op.create_index("records_machine", "records", ["machine_key", "number"])
    op.create_index("records_event", "records", ["event_id", "number"])
    op.create_index("records_order", "records", ["order_id", "number"])
