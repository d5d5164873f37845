"""The tables: columns for what is asked for or compared, JSON for what is only ever read whole.

Times are microseconds since 1970, so that both databases keep and compare them exactly. There are no
foreign keys: the rules of what may refer to what are core's, and orders outlive their machines. A change
here needs a migration beside it; a test compares the two.
"""

from forewarn.store.tables.caller_tables import answers, rehearsals, sessions, tokens, webhooks
from forewarn.store.tables.columns import TIME, metadata
from forewarn.store.tables.fleet_tables import (
    LISTED_GROUP,
    OWN_DRIVER,
    UNREACHABLE,
    group_activity,
    groups,
    hosts,
    machine_activity,
    machines,
    projects,
)
from forewarn.store.tables.store_tables import THE_META_ROW, meta, promises, records, tallies, tombstones
from forewarn.store.tables.work_tables import (
    COUNTED_EVENT,
    COUNTED_TYPE,
    GROUP_OF_LISTED_EVENT,
    HOST_OF_OPEN_ORDER,
    IS_LISTED_EVENT,
    IS_OPEN_ORDER,
    LISTED_EVENT,
    OPEN_ORDER,
    OPEN_ROLLOUT,
    event_machines,
    events,
    holds,
    notices,
    order_machines,
    order_waits,
    orders,
    rollouts,
)

__all__ = [
    "COUNTED_EVENT",
    "COUNTED_TYPE",
    "GROUP_OF_LISTED_EVENT",
    "HOST_OF_OPEN_ORDER",
    "IS_LISTED_EVENT",
    "IS_OPEN_ORDER",
    "LISTED_EVENT",
    "LISTED_GROUP",
    "OPEN_ORDER",
    "OPEN_ROLLOUT",
    "OWN_DRIVER",
    "THE_META_ROW",
    "TIME",
    "UNREACHABLE",
    "answers",
    "event_machines",
    "events",
    "group_activity",
    "groups",
    "holds",
    "hosts",
    "machine_activity",
    "machines",
    "meta",
    "metadata",
    "notices",
    "order_machines",
    "order_waits",
    "orders",
    "projects",
    "promises",
    "records",
    "rehearsals",
    "rollouts",
    "sessions",
    "tallies",
    "tokens",
    "tombstones",
    "webhooks",
]
