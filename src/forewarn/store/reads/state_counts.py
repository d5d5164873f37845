"""Counting what there is by its state: of a project, or of the whole fleet."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, case, func, select

from forewarn.core.words import EventStatus, HostState, MachineState, OrderState
from forewarn.store import tables
from forewarn.store.reads.reader import EVENT_PROJECT, Reader

_M, _O, _E, _H = tables.machines.c, tables.orders.c, tables.events.c, tables.hosts.c
_OPEN = (OrderState.QUEUED, OrderState.ANNOUNCED, OrderState.STARTED, OrderState.FAILED)
_ROLLOUT_STATE = case((tables.rollouts.c.aborting, "aborting"), else_=tables.rollouts.c.state)

HOLD_REACHES = ("fleet", "project", "host")

ROLLOUT_STATES = ("running", "paused", "aborting")


class StateCounts(Reader):
    """How many there are in each state."""

    def _machine_states(self) -> dict[str, int]:
        return self._count_by(_M.state, MachineState, *self._only(_M.project))

    def _host_states(self) -> dict[str, int]:
        return self._count_by(_H.state, HostState, *self._only_my_hosts())

    def _order_states(self) -> dict[str, int]:
        return self._count_by(_O.state, _OPEN, tables.OPEN_ORDER, *self._only(_O.project))

    def _event_statuses(self) -> dict[str, int]:
        return self._count_by(_E.status, EventStatus, tables.LISTED_EVENT, *self._only(EVENT_PROJECT))

    def _rollout_states(self) -> dict[str, int]:
        return self._count_by(_ROLLOUT_STATE, ROLLOUT_STATES, tables.OPEN_ROLLOUT)

    def _count_by(
        self, column: ColumnElement[Any], states: Iterable[str], *only: ColumnElement[bool]
    ) -> dict[str, int]:
        counted = self._all(select(column, func.count()).where(*only).group_by(column))
        # A state that nothing is in any more must show as 0, or a metric would stay where it was.
        return {str(state): 0 for state in states} | {row[0]: row[1] for row in counted}
