"""Reading and saving rollouts, and what of the fleet they are decided by."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from forewarn.core.model.footprint import Footprint
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.survey import HostSurvey
from forewarn.core.words import (
    GroupName,
    HostName,
    MachineId,
    MachineName,
    MachineState,
    OrderId,
    ProjectName,
)
from forewarn.store import tables
from forewarn.store.reads.budget_reads import BudgetReads
from forewarn.store.reads.cursors import beyond, decode, page
from forewarn.store.reads.reader import VERSIONED_GROUP, among
from forewarn.store.rows.fleet_rows import (
    HOLD_COLUMNS,
    HOST_COLUMNS,
    PROJECT_COLUMNS,
    hold_of,
    host_of,
    project_of,
)
from forewarn.store.rows.rollout_rows import ROLLOUT_COLUMNS, rollout_of
from forewarn.store.rows.times import micros, moment_or_none
from forewarn.store.rows.work_rows import ORDER_COLUMNS, order_of

_R, _M, _E, _O = tables.rollouts.c, tables.machines.c, tables.events.c, tables.orders.c
_OPEN = _R.ended_at.is_(None)
_NOT_STOPPED = _M.state != MachineState.STOPPED.value

_ORDERS = among(ORDER_COLUMNS, _O.id)
_ORDERS_ON = among(ORDER_COLUMNS, _O.host).where(_O.ended_at.is_(None), _O.work.is_not(None))
_HOSTS = among(HOST_COLUMNS, tables.hosts.c.name)
_FOOTPRINTS = (
    among((_M.host, _M.group_name, _M.update_domain, _M.project, func.count()), _M.host)
    .where(_NOT_STOPPED)
    .group_by(_M.host, _M.group_name, _M.update_domain, _M.project)
)
_SIZES = select(_M.group_name, func.count()).group_by(_M.group_name)
_LISTED = select(_E.group_name, _E.domain).where(_E.ended_at.is_(None)).distinct()
_SILENT = among((_M.id, _M.name), _M.host).where(_NOT_STOPPED, _M.last_seen.is_(None))


class RolloutReads(BudgetReads):
    """Rollouts, and the ground they are planned on."""

    def rollout(self, rollout: str) -> Rollout | None:
        """Find a rollout, open or over; ids in any case."""
        rows = self._all(select(*ROLLOUT_COLUMNS).where(_R.id == rollout.upper()))
        return rollout_of(rows[0]) if rows else None

    def rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts, newest first."""
        return self._page(select(*ROLLOUT_COLUMNS), after=after, limit=limit)

    def page_of_open_rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts that are not over, newest first, and give the cursor of the next page."""
        return self._page(select(*ROLLOUT_COLUMNS).where(_OPEN), after=after, limit=limit)

    def _page(
        self, query: Select[Any], *, after: str | None, limit: int
    ) -> tuple[Sequence[Rollout], str | None]:
        place = None if after is None else decode(after, like=(int, str))
        rows = self._all(beyond(query, (_R.number, _R.id), place, limit=limit, newest=True))
        return page(list(map(rollout_of, rows)), limit=limit, place=lambda each: (each.number, each.id))

    def open_rollouts(self) -> Sequence[Rollout]:
        """List rollouts that are not over, the oldest first."""
        found = (rollout_of(row) for row in self._all(select(*ROLLOUT_COLUMNS).where(_OPEN)))
        return sorted(found, key=lambda rollout: (rollout.number, rollout.id))

    def due_rollouts(self, now: datetime, *, limit: int) -> Sequence[str]:
        """List open rollouts that want to be looked at by now, the longest due first."""
        query = select(_R.id).where(_OPEN, _R.due_at <= micros(now))
        return self._connection.scalars(query.order_by(_R.due_at, _R.number).limit(limit)).all()

    def next_rollout_due(self) -> datetime | None:
        """Say when the next open rollout wants to be looked at."""
        query = select(func.min(_R.due_at)).where(_OPEN, _R.due_at.is_not(None))
        return moment_or_none(self._connection.scalar(query))

    def orders_by_id(self, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        """Find orders, open or over."""
        return {order.id: order for order in map(order_of, self._among(_ORDERS, orders))}

    def silent_machines(self, hosts: Sequence[HostName]) -> Mapping[MachineId, MachineName]:
        """Find the machines on these hosts that were never seen, as far as that is saved."""
        return {row[0]: row[1] for row in self._among(_SILENT, hosts)}

    def survey(self, hosts: Sequence[HostName]) -> HostSurvey:
        """Load what a decision about work on these hosts needs, counted by the database."""
        groups = self._groups_of(self._all(select(*VERSIONED_GROUP).where(tables.LISTED_GROUP)))
        listed: dict[GroupName, set[int]] = defaultdict(set)
        for group, domain in self._all(_LISTED):
            listed[group].add(domain)
        sizes = {row[0]: row[1] for row in self._all(_SIZES)}
        holds = self._all(select(*HOLD_COLUMNS).order_by(tables.holds.c.at, tables.holds.c.id))
        found = [host_of(row) for row in self._among(_HOSTS, hosts)]
        return HostSurvey(
            hosts={host.name: host for host in found},
            footprints=self._footprints(hosts),
            orders={
                order.host: order for order in map(order_of, self._among(_ORDERS_ON, hosts)) if order.host
            },
            listed={group: frozenset(domains) for group, domains in listed.items()},
            budgets=self._budgets_of(groups),
            notices={group.name: group.policy.notice for group in groups if group.policy.notice is not None},
            sizes={group.name: sizes.get(group.name, 0) for group in groups},
            holds=tuple(hold_of(row) for row in holds),
            projects={
                project.name: project for project in map(project_of, self._all(select(*PROJECT_COLUMNS)))
            },
        )

    def _footprints(self, hosts: Sequence[HostName]) -> dict[HostName, Footprint]:
        domains: dict[HostName, dict[GroupName, dict[int, int]]] = defaultdict(dict)
        projects: dict[HostName, set[ProjectName]] = defaultdict(set)
        for host, group, domain, project, count in self._among(_FOOTPRINTS, hosts):
            domains[host].setdefault(group, {})[domain] = count
            projects[host].add(project)
        return {
            host: Footprint(counts=dict(sorted(groups.items())), projects=frozenset(projects[host]))
            for host, groups in domains.items()
        }
