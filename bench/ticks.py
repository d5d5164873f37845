"""The time of a tick, which should be the same in a small and a large fleet for the same work."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench import fleets
from bench.processes import Failed
from bench.report import Row
from bench.workplace import Workplace
from forewarn.clock import ManualClock, monotonic
from forewarn.control.engine.driver_calls import DriverCall
from forewarn.control.interfaces import LastPolls, UntakenNotices
from forewarn.control.webhook_use_cases import WebhookTerms
from forewarn.core.basic_types import Action, GroupName, MachineId
from forewarn.core.model.order import AttemptId
from forewarn.core.model.slice import Sent
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.guest.board.board import Board
from forewarn.guest.rehearsal import RehearsalRegistry
from forewarn.server.control_wiring import Control, ControlInputs, wire_control
from forewarn.server.preparation import PreparedServer, new_secret
from forewarn.signals import Signal

ROUNDS = 5
SPAN = timedelta(hours=1)  # long enough to announce an order, carry it out and remove its event
# The disk causes variations of about a quarter.
MOST_RATIO = 1.25
# A restart keeps the machine on its host. A redeploy must choose a host among all.
ACTIONS = (Action.RESTART, Action.REDEPLOY)
# Machines of one rack, of sets and standalone.
ORDERED = tuple(range(0, fleets.RACK, 5))


class NoGuests:
    """Guests that never poll."""

    def pending(self) -> bool:
        """Return False: there are no polls."""
        return False

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Return nothing."""
        return {}, {}

    def fresh(self) -> LastPolls:
        """Return no polls."""
        return lambda _machines: {}

    def untaken_notices(self) -> UntakenNotices:
        """Return no notices."""
        return lambda _event: {}

    def has_notices(self) -> bool:
        """Return False: there are no notices."""
        return False

    def take_notices(self) -> Sent:
        """Return nothing."""
        return {}


class NoLanes:
    """Lanes that take no calls. The simulated driver answers on the engine's thread."""

    def submit(self, call: DriverCall) -> None:
        """Refuse a call."""
        raise Failed(f"there is no lane for {call}")

    def withdraw(self, attempt: AttemptId) -> None:
        """Do nothing: no call waits."""


def compare(work: Workplace, *, small: Path, large: Path) -> dict[str, Any]:
    """Run the same hour in both fleets alternately; return the milliseconds of a tick."""
    found: dict[str, Any] = {}
    cores = {
        "small": fleets.open_settings(small, clock="manual"),
        "large": fleets.open_settings(large, clock="manual"),
    }
    try:
        for action in ACTIONS:
            found[action.value] = _by_turns(cores, action)
            shown = ", ".join(f"{name} {median(each):.1f} ms" for name, each in found[action.value].items())
            work.log(f"a tick, {action}: {shown}")
    finally:
        for core in cores.values():
            core.store.close()
    return found


def _by_turns(cores: Mapping[str, PreparedServer], action: Action) -> dict[str, list[float]]:
    """Measure all fleets alternately. The first hour, which reads files, does not count."""
    rounds = [{name: _hour(core, action) for name, core in cores.items()} for _ in range(ROUNDS + 1)]
    return {name: [each[name] for each in rounds[1:]] for name in cores}


def rows(found: dict[str, Any], *, machines: int) -> list[Row]:
    """Compare the tick times of the large and the small fleet, for each action."""
    return [_row(action, found[action.value], machines=machines) for action in ACTIONS]


def _row(action: Action, rounds: Mapping[str, Sequence[float]], *, machines: int) -> Row:
    large, small = median(rounds["large"]), median(rounds["small"])
    return Row(
        what=f"tick time, {machines:,} / {fleets.RACK} machines, {action}",
        measured=f"{large / small:.2f}",
        value=round(large / small, 3),
        target=f"near 1, < {MOST_RATIO}",
        met=large / small < MOST_RATIO,
        note=f"{large:.1f} to {small:.1f} ms, medians of {ROUNDS} rounds of {len(ORDERED)} orders",
    )


def _control(core: PreparedServer) -> Control:
    around = ControlInputs(
        guests=NoGuests(),
        endpoint=RehearsalRegistry(Board(lineage="")),
        drivers=core.drivers.with_hooks,
        external=core.drivers.external,
        calls=NoLanes(),
        webhooks=WebhookTerms(new_secret=new_secret, changed=Signal()),
        new_secret=new_secret,
        monotonic=monotonic,
    )
    return wire_control(core.context, store=core.store, around=around)


def _hour(core: PreparedServer, action: Action) -> float:
    """Place orders, and let an hour pass; return the mean milliseconds of a tick with due work."""
    control, request = _control(core), OrderRequest(by="bench")
    engine, orders = control.engine, control.use_cases.orders
    for place in ORDERED:
        core.transact(partial(orders.order_machine, name=f"vm-0-{place}", action=action, request=request))
    clock = core.clock
    if not isinstance(clock, ManualClock):
        raise Failed("this benchmark needs a manual clock")
    until, spent = clock.now() + SPAN, []
    due: datetime | None = clock.now()
    while due is not None and due <= until:
        clock.set(due)
        began = time.perf_counter()
        engine.tick(due)
        next_due = engine.next_due(due)
        spent.append(time.perf_counter() - began)
        due = next_due
    clock.set(until)
    return round(sum(spent) / len(spent) * 1000, 3)
