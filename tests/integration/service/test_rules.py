"""The rules of the service over random histories, on a real SQLite file.

Every transaction is held against `core/checks.py`, which shares no code with what it checks.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, time, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from forewarn.control.ports.records import HistoryFilter
from forewarn.control.ports.scope import EVERYTHING, Scope
from forewarn.control.ports.store import Transaction
from forewarn.core.checks import Change, misplaced, overdue, unexplained, violations
from forewarn.core.errors import ForewarnError
from forewarn.core.model.absence import Absence
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order, OrderTerms
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice
from forewarn.core.model.waiting import Waiting
from forewarn.core.model.windows import Calendar, Window
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.words import (
    DEFAULT_PROJECT,
    Action,
    EventStatus,
    GroupKind,
    HostName,
    MachineId,
    OrderId,
    Priority,
    Work,
)
from forewarn.store.sql import SqlStore
from tests.counts import tries
from tests.harness import START, Service, fleet, group, machine
from tests.stores import sqlite_url

HOSTS = [f"host-{number}" for number in range(1, 5)]
GROUPS = ["web", "shop"]
NAMES = [f"m-{number}" for number in range(9)]
# Around the moments that matter: linger, steps, notices, staleness, a day's silence, a week's notice.
SPANS = [0, 1, 29, 30, 89, 90, 91, 300, 599, 600, 899, 900, 1500, 2700, 2701, 7200, 87_000, 605_000]

# Around noon, when histories begin; the blackout days are some of those that follow.
windows = st.builds(
    Window,
    days=st.frozensets(st.integers(0, 6), min_size=3),
    start=st.sampled_from([time(12), time(12, 30), time(14), time(23)]),
    length=st.sampled_from([timedelta(minutes=6), timedelta(minutes=20), timedelta(hours=3)]),
)
calendars = st.builds(
    Calendar,
    windows=st.lists(windows, max_size=2).map(tuple),
    blackout=st.frozensets(st.integers(0, 3).map(lambda day: START.date() + timedelta(days=day)), max_size=1),
    zone=st.sampled_from([UTC, ZoneInfo("Europe/Berlin")]),
)

places = st.tuples(st.sampled_from(HOSTS), st.sampled_from([*GROUPS, None]), st.integers(0, 2))


WAITS = (Waiting(what="it", reason="waits"),)


def _settled(fleet: Slice) -> Slice:
    """The fleet without what may change as other things come: how many reasons an order names, and which."""

    def settled(order: Order) -> Order:
        return replace(order, due_at=None, waiting=WAITS if order.waiting else ())

    return replace(fleet, orders={id_: settled(order) for id_, order in fleet.orders.items()})


# Of which orders each machine has heard.
Announced: TypeAlias = set[tuple[OrderId, MachineId]]


class CheckedStore:
    """The real store; every transaction is checked against the rules."""

    def __init__(self, store: SqlStore, service: Service, announced: Announced) -> None:
        self._store = store
        self._service = service
        self._announced = announced
        self._after: Slice | None = None  # the last transaction, if it is known
        self.read = store.read

    def scoped(self, scope: Scope) -> "CheckedStore":
        assert scope == EVERYTHING
        return self

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        before, self._after = self._after or self._everything(), None
        saved: list[Any] = []
        with self._store.write() as tx:
            yield _Saving(tx, saved)  # type: ignore[misc]
        if not saved:
            return
        with self._store.read() as snapshot:
            after = self._after = snapshot.everything()
            fresh = snapshot.history(HistoryFilter(above=before.number, limit=1000))
        for changes in saved:
            change = Change(
                before=before,
                after=after,
                records=fresh,
                now=changes.now,
                policy=self._service.policy,
                announced=frozenset(self._announced),
            )
            assert violations(change) == []
        self._announced |= {
            (event.order, named.machine) for event in after.events.values() for named in event.resources
        }

    def _everything(self) -> Slice:
        with self._store.read() as snapshot:
            return snapshot.everything()


class _Saving:
    """A transaction that remembers what it saved."""

    def __init__(self, tx: Transaction, saved: list[Any]) -> None:
        self._tx = tx
        self._saved = saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def save(self, changes: Any) -> None:
        self._saved.append(changes)
        self._tx.save(changes)


class Histories(RuleBasedStateMachine):
    """Operators, users, guests and time, doing what they like."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.service = Service(sqlite_url(Path(self._folder.name)))
        self.announced: Announced = set()
        self._checked()
        self.now = START
        self.finished: set[tuple[str, str]] = set()

    def _checked(self) -> None:
        self.service.wire(CheckedStore(self.service.store, self.service, self.announced))  # type: ignore[arg-type]

    def teardown(self) -> None:
        self.service.close()
        self._folder.cleanup()

    @initialize(
        where=st.lists(places, min_size=3, max_size=len(NAMES)),
        spot=st.sets(st.sampled_from(NAMES)),
        polled=st.sets(st.sampled_from(NAMES)),
        failing=st.sets(st.sampled_from(NAMES)),
        calendar=calendars,
        budgets=st.lists(st.integers(0, 2), min_size=len(GROUPS), max_size=len(GROUPS)),
    )
    def declare(
        self,
        where: list[tuple[str, str | None, int]],
        spot: set[str],
        polled: set[str],
        failing: set[str],
        calendar: Calendar,
        budgets: list[int],
    ) -> None:
        self.service.driver.failing = failing
        members = [
            machine(
                name,
                host,
                group=owner,
                domain=domain if owner else 0,
                priority=Priority.SPOT if name in spot else Priority.REGULAR,
            )
            for name, (host, owner, domain) in zip(NAMES, where, strict=False)
        ]
        kinds = [GroupKind.AVAILABILITY_SET, GroupKind.SCALE_SET]
        sizes = [sum(member.group == name for member in members) for name in GROUPS]
        groups = [
            replace(
                group(name, kind=kind),
                # With as many as there are none could ever be maintained, and that is refused.
                policy=GroupPolicy(budget=max(0, min(budget, size - 1))),
            )
            for name, kind, budget, size in zip(GROUPS, kinds, budgets, sizes, strict=True)
        ]
        declared = fleet(*groups, *members, hosts=len(HOSTS))
        self.service.apply(replace(declared, projects=(Project(name=DEFAULT_PROJECT, calendar=calendar),)))
        for name in polled & {member.name for member in members}:
            self.service.poll(name)

    def _try(self, act: Any, *args: Any, **more: Any) -> None:
        """What is refused must be refused on purpose, and change nothing."""
        before = self.service.everything()
        try:
            act(*args, **more)
        except ForewarnError as refusal:
            assert str(refusal)  # noqa: PT017 - refusals are allowed here, not expected
            assert self.service.everything() == before

    def _events(self) -> list[Any]:
        return sorted(self.service.everything().events.values(), key=lambda event: event.number)

    @rule(
        name=st.sampled_from(NAMES),
        action=st.sampled_from(
            [Action.RESTART, Action.REDEPLOY, Action.FREEZE, Action.EVICT, Action.TERMINATE, Action.START]
        ),
    )
    def order_machine(self, name: str, action: Action) -> None:
        self._try(self.service.order, name, action)

    @rule(
        host=st.sampled_from(HOSTS),
        work=st.sampled_from([Work.FREEZE, Work.REBOOT, Work.REDEPLOY]),
        deadline=st.sampled_from([None, 60, 7200]),
    )
    def maintain(self, host: str, work: Work, deadline: int | None) -> None:
        at = None if deadline is None else self.service.clock.now() + timedelta(seconds=deadline)
        request = OrderRequest(by="test", terms=OrderTerms(deadline=at))
        self._try(self.service.fleet.hosts.order_host, host, Action.MAINTENANCE, request, work=work)
        self.service.tick()

    @rule(
        host=st.sampled_from(HOSTS),
        action=st.sampled_from([Action.DEGRADE, Action.FAIL, Action.RESTORE, Action.CORDON, Action.UNCORDON]),
    )
    def order_host(self, host: str, action: Action) -> None:
        self._try(self.service.host_order, host, action)

    @precondition(lambda self: self._events())
    @rule(data=st.data())
    def approve(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self._events()))
        everyone = self.service.everything().machines.values()
        members = sorted(member.name for member in everyone if member.group == event.group)
        self._try(self.service.approve, data.draw(st.sampled_from(members)), event)

    @precondition(lambda self: self._events())
    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def approve_from_anywhere(self, data: st.DataObject, name: str) -> None:
        """Rule 9: an event of another group cannot be approved."""
        event = data.draw(st.sampled_from(self._events()))
        known = {member.name: member for member in self.service.everything().machines.values()}
        if name in known and known[name].group != event.group:
            before = self.service.everything()
            try:
                self.service.approve(name, event)
            except ForewarnError:
                assert self.service.everything() == before
            else:
                raise AssertionError(f"{name} approved an event of {event.group}")

    @precondition(lambda self: self._events())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self._events()))
        self._try(self.service.orders.cancel_event, event.id, by="test")
        self.service.tick()

    @precondition(lambda self: self.service.everything().orders)
    @rule(data=st.data(), what=st.sampled_from(["cancel_order", "retry_order", "abandon_order"]))
    def decide_order(self, data: st.DataObject, what: str) -> None:
        order = data.draw(st.sampled_from(sorted(self.service.everything().orders)))
        self._try(getattr(self.service.orders, what), order, by="test")
        self.service.tick()

    @rule(name=st.sampled_from(NAMES), where=places)
    def put(self, name: str, where: tuple[str, str | None, int]) -> None:
        """Add a machine, move one, or regroup one."""
        host, owner, domain = where
        domain = domain if owner else 0
        self._try(self.service.put, name, host=HostName(host), group=owner, update_domain=domain)

    @rule(name=st.sampled_from(NAMES), host=st.sampled_from(HOSTS))
    def move(self, name: str, host: str) -> None:
        self._try(self.service.put, name, host=HostName(host))

    @rule(name=st.sampled_from(NAMES), other=st.sampled_from(NAMES))
    def rename(self, name: str, other: str) -> None:
        self._try(self.service.put, name, name=other)

    @rule(minutes=st.sampled_from([2, 20, 50]))
    def jump(self, minutes: int) -> None:
        """The clock jumps, and guests have lost that much notice."""
        later = self.service.clock.now() + timedelta(minutes=minutes)
        self.service.clock.set(later)
        self.service.engine.grant_grace(timedelta(minutes=minutes), later)
        self.service.tick()

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        self._try(self.service.delete, name)

    @rule(name=st.sampled_from(NAMES))
    def poll(self, name: str) -> None:
        self._try(self.service.poll, name)

    @rule(name=st.sampled_from(NAMES))
    def break_or_mend(self, name: str) -> None:
        self.service.driver.failing ^= {name}

    @rule(seconds=st.sampled_from(SPANS))
    def advance(self, seconds: int) -> None:
        self.service.advance(seconds=seconds)

    @rule(seconds=st.sampled_from(SPANS))
    def outage(self, seconds: int) -> None:
        """Time goes on while nobody serves."""
        before = self.service.clock.now()
        later = before + timedelta(seconds=seconds)
        self.service.engine.keep_time(later)
        self.service.clock.set(later)
        self.service.engine.note_absence(Absence(since=before, until=later))
        self.service.tick()

    @rule(milliseconds=st.sampled_from([5, 900]))
    def tick_late(self, milliseconds: int) -> None:
        """No tick comes at the very moment that something is due."""
        later = self.service.clock.now() + timedelta(milliseconds=milliseconds)
        self.service.engine.keep_time(later)
        self.service.clock.set(later)
        self.service.tick()

    @rule()
    def restart(self) -> None:
        self.service.restart()
        self._checked()

    @invariant()
    def time_goes_on(self) -> None:
        assert self.service.clock.now() >= self.now
        self.now = self.service.clock.now()

    @invariant()
    def nothing_is_left_to_do(self) -> None:
        """Rules 5, 10 and 11: what can be done is done, and doing it again changes nothing."""
        before = self.service.everything()
        for order in before.orders:
            # Not only what is due: a wake-up that got lost would hide there.
            self.service.engine.work_on(order, self.service.clock.now())
        after = self.service.everything()
        assert _settled(after) == _settled(before)
        assert misplaced(after) == []
        assert overdue(after, now=self.service.clock.now(), policy=self.service.policy) == []
        assert unexplained(after) == []

    @invariant()
    def no_step_is_begun_twice(self) -> None:
        """Rule 8."""
        begun = self.service.driver.begun
        assert len(begun) == len(set(begun))

    @invariant()
    def a_failed_host_ends_up_empty(self) -> None:
        whole = self.service.everything()
        for host in whole.hosts.values():
            carried = [member for member in whole.machines.values() if member.host == host.name]
            busy = any(order.host == host.name for order in whole.orders.values())
            assert host.state != "failed" or busy or not carried

    @invariant()
    def started_events_are_in_somebodys_hands(self) -> None:
        whole = self.service.everything()
        for event in whole.events.values():
            if event.status is EventStatus.STARTED:
                assert whole.orders[event.order].state in ("started", "failed")


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=tries(20, long=1000),
    stateful_step_count=30,
    deadline=None,
    # Shrinking a history takes minutes; the steps that led there are printed all the same.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
