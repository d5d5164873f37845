"""What metrics count of the whole fleet."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Text, case, cast, func, select

from forewarn.core.words import EventStatus, Kind
from forewarn.store import tables
from forewarn.store.reads.state_counts import HOLD_REACHES, StateCounts
from forewarn.store.rows.times import moment_or_none

_E, _H, _O = tables.events.c, tables.hosts.c, tables.orders.c
_TALLIED = (Kind.NOTICE_LATE, Kind.NOTICE_NEVER, Kind.PROMISE_BROKEN, Kind.UNANNOUNCED_IMPACT)
# What was never counted is shown as 0, or a metric would begin in the middle.
_COUNTED = {kind.value: 0 for kind in _TALLIED}
_HOLD_REACH = case(
    (tables.holds.c.host.is_not(None), "host"),
    (tables.holds.c.project.is_not(None), "project"),
    else_="fleet",
)


class MetricQueries(StateCounts):
    """How much there is, and in which state."""

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders and listed events by state."""
        return {
            "machines": self._machine_states(),
            "hosts": self._host_states(),
            "orders": self._order_states(),
            "events": self._event_statuses(),
            "rollouts": self._rollout_states(),
        }

    def holds_by_reach(self) -> Mapping[str, int]:
        """Count holds by what they reach."""
        return self._count_by(_HOLD_REACH, HOLD_REACHES)

    def oldest_awaited(self) -> datetime | None:
        """Return the first NotBefore of all events that have not started."""
        awaited = tables.COUNTED_EVENT, _E.status == EventStatus.SCHEDULED.value
        # In the order of its index, of which this reads one row.
        first = select(_E.not_before).where(*awaited).order_by(_E.not_before).limit(1)
        return moment_or_none(self._connection.scalar(first))

    def stuck_orders(self) -> int:
        """Count open orders that wait for a person."""
        # No text of a reason contains this: its own quotes would be escaped.
        stuck = cast(_O.waiting, Text).contains('"stuck": true', autoescape=True)
        return int(self._all(select(func.count()).where(tables.OPEN_ORDER, stuck))[0][0])

    def hosts_by_driver(self) -> Mapping[str, int]:
        """Count hosts by who does the work on them."""
        own = select(_H.driver, func.count()).where(tables.OWN_DRIVER).group_by(_H.driver)
        declared: dict[str, int] = dict(map(tuple, self._all(own)))
        counted: dict[str, int] = {self._meta.defaults.driver_of(None): 0} | declared
        hosts = self._all(select(func.count()).select_from(tables.hosts))[0][0]
        counted[self._meta.defaults.driver_of(None)] += hosts - sum(declared.values())
        return counted

    def tallies(self) -> Mapping[str, int]:
        """Return how many machines the records of a kind have named, for the kinds that are counted."""
        query = select(tables.tallies.c.kind, tables.tallies.c.machines)
        return _COUNTED | {row[0]: row[1] for row in self._all(query)}
