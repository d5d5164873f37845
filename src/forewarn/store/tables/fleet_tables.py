"""What is declared, and when it was last heard of: projects, hosts, groups, machines."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
)

from forewarn.store.tables.columns import NAME, TIME, index_where, metadata

projects = Table(
    "projects",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("settings", JSON, nullable=False, server_default="{}"),  # as declared
    Column("source", NAME, nullable=False, server_default="declared"),
)

hosts = Table(
    "hosts",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("state", Text, nullable=False),
    Column("driver", Text),
    Column("uri", Text),
    Column("at_once", Integer),
    Column("resources", JSON, nullable=False, server_default="{}"),
    Column("labels", JSON, nullable=False, server_default="{}"),
    Column("bare_metal", Boolean, nullable=False, server_default=false()),
    Column("cordoned_for", NAME),
    Column("source", NAME, nullable=False, server_default="declared"),
    Column("unreachable_since", TIME),
    Column("rack", NAME),  # of its labels
    # How many machines it carries, or will once moves are over. Kept: counting all of them anew costs more
    # the larger the fleet.
    Column("carried", Integer, nullable=False, server_default="0"),
    Index("hosts_room", "state", "carried", "name"),
    Index("hosts_rack", "rack", "state", "carried", "name"),
)

# Most hosts leave it to the fleet's default.
OWN_DRIVER: ColumnElement[bool] = hosts.c.driver.is_not(None)
index_where("hosts_driver", hosts.c.driver, hosts.c.name, only=OWN_DRIVER)
UNREACHABLE: ColumnElement[bool] = hosts.c.unreachable_since.is_not(None)
index_where("hosts_unreachable", hosts.c.name, only=UNREACHABLE)

groups = Table(
    "groups",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("project", NAME, nullable=False),
    Column("kind", Text, nullable=False),
    Column("update_domains", Integer, nullable=False),
    Column("born", BigInteger, nullable=False),
    Column("policy", JSON, nullable=False, server_default="{}"),
    Column("incarnation", BigInteger, nullable=False),
    Column("enabled_at", TIME),
    Column("ready_at", TIME),
    Column("heard", Boolean, nullable=False, server_default=false()),
    Column("source", NAME, nullable=False, server_default="declared"),
    Column("version", BigInteger, nullable=False),  # grows with each save: what compare-and-set compares
    Column("changed", BigInteger, nullable=False),  # the number of its last change, for the feed
    Index("groups_changed", "changed"),
)
# Literal, not bound: SQLite uses a partial index only where the query repeats its condition.
LISTED_GROUP: ColumnElement[bool] = groups.c.kind != literal_column("'standalone'")
index_where("groups_listed", groups.c.name, only=LISTED_GROUP)
index_where("groups_project", groups.c.project, groups.c.name, only=LISTED_GROUP)
index_where("groups_ready", groups.c.ready_at, only=groups.c.ready_at.is_not(None))

# When each enabled group last polled, or else was enabled. A table of its own, like that of the machines:
# it is written for whole fleets at a time, and nobody who decides something must wait for that.
group_activity = Table(
    "group_activity",
    metadata,
    Column("group_name", NAME, primary_key=True),
    Column("last_active", TIME, nullable=False),
    Index("group_activity_oldest", "last_active", "group_name"),
)

machines = Table(
    "machines",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("name", NAME, nullable=False),
    Column("key", NAME, nullable=False),  # the name without its case
    Column("project", NAME, nullable=False),
    Column("group_name", NAME, nullable=False),
    Column("host", NAME),
    Column("last_host", NAME),  # of a machine that is on none
    Column("bound_for", NAME),
    Column("place", NAME),  # the host that it is bound for, or else its own: where it is counted
    Column("update_domain", Integer, nullable=False),
    Column("fault_domain", Integer, nullable=False),
    Column("priority", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("network", NAME, nullable=False),
    Column("address", NAME),
    Column("mac", Text),
    Column("port", Integer),
    Column("tags", JSON, nullable=False),
    Column("location", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("size", Text, nullable=False),
    Column("os", Text, nullable=False),
    Column("mobility", Text, nullable=False, server_default="cold"),
    Column("resources", JSON, nullable=False, server_default="{}"),
    Column("labels", JSON, nullable=False, server_default="{}"),
    Column("source", NAME, nullable=False, server_default="declared"),
    Column("changed", BigInteger, nullable=False),
    UniqueConstraint("project", "key", name="machines_name"),
    UniqueConstraint("network", "address", name="machines_address"),
    UniqueConstraint("port", name="machines_port"),
    Index("machines_key", "key"),
    Index("machines_host", "host"),
    Index("machines_place", "place", "group_name", "update_domain"),
    Index("machines_group", "group_name", "update_domain", "state"),
    Index("machines_state", "state"),
    Index("machines_changed", "changed"),
)

# When machines last polled; those that never did have no row.
machine_activity = Table(
    "machine_activity",
    metadata,
    Column("machine_id", NAME, primary_key=True),
    Column("last_seen", TIME, nullable=False),
)
