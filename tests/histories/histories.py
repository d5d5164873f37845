"""Random actions of operators, users, guests, drivers and time, on a real SQLite file.

A history follows from its seed. Random actions alone rarely reach the rules that matter, so some actions are
combined on purpose.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, time, timedelta
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from forewarn.control.board_feed import BoardFeed
from forewarn.control.followed_records import RecentRecords
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    EXTERNAL,
    SIMULATED,
    Action,
    EventStatus,
    GroupKind,
    HostName,
    Mobility,
    Priority,
    ServiceMode,
    Work,
)
from forewarn.core.errors import ForewarnError
from forewarn.core.feed import Delta
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.event import Event
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order, OrderTerms
from forewarn.core.model.project import ALWAYS, Calendar, Project, Window
from forewarn.core.model.slice import Slice
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.saved import Saved
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.boards import read_whole, sent_by
from tests.helpers.service.harness import START, Service, fleet, group, machine
from tests.histories.checked_store import Announced, CheckedStore
from tests.histories.situations import Look, Reached
from tests.rules import misplaced, overdue, unexplained

T = TypeVar("T")
H = TypeVar("H", bound="Histories")

STEPS = 36
HOSTS = [f"host-{number}" for number in range(1, 5)]
GROUPS = ["web", "shop"]
NAMES = [f"m-{number}" for number in range(9)]
WORKS = [Work.FREEZE, Work.REBOOT, Work.REDEPLOY]
# Spans near the important ones: linger, steps, notices, staleness, idle groups, a week's notice.
SPANS = [0, 1, 29, 30, 89, 90, 91, 300, 599, 600, 899, 900, 1500, 2700, 2701, 7200, 87_000, 605_000]
WAITS = (Waiting(what="it", reason="waits"),)

Act: TypeAlias = Callable[[Any], None]


def act(weight: int) -> Callable[[Act], Act]:
    """Register an action of histories, with its relative frequency."""

    def mark(method: Act) -> Act:
        method.weight = weight  # type: ignore[attr-defined]
        return method

    return mark


# Among the machines with live migration, this one is never redeployed.
LIVE_ONLY = NAMES[3]
MOBILITIES = (Mobility.LIVE, Mobility.COLD, Mobility.NONE)


def mobility_of(name: str, chosen: Mobility) -> Mobility:
    return Mobility.LIVE_ONLY if name == LIVE_ONLY and chosen is Mobility.LIVE else chosen


class Histories:
    """One history: its actions, and the checks after each of them."""

    STEPS = STEPS
    DRIVER = SIMULATED  # of orders and hosts that name none

    def __init__(self, seed: int, reached: Reached) -> None:
        self.random = Random(seed)
        self._delivery = Random(seed)  # separate, so that the rest of a history does not depend on it
        self._mobility = Random(seed)  # likewise
        self.steps = [f"seed {seed}"]
        self.reached = reached
        self._folder = tempfile.TemporaryDirectory()
        self.service = Service(sqlite_url(Path(self._folder.name)), preview=True)
        self.announced: Announced = set()
        self._checked()
        self.now = START
        self._recorded = 0  # the last record that was read

    def _checked(self) -> None:
        self.service.wire(CheckedStore(self.service.store, self.service, self.announced))  # type: ignore[arg-type]
        store = self.service.store
        self._board = read_whole(store, lineage=self.service.url)
        self._feed = BoardFeed(store, self._publish, recent=RecentRecords(store), number=self._board.number)
        store.saved = self._note

    def _note(self, saved: Saved) -> None:
        self._feed.note(saved)
        self.service.engine.note(saved)

    def _publish(self, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            self._board.apply(delta)

    def check_board(self) -> None:
        """Compare a board that follows the changes with one that reads everything, now and then."""
        self._feed.catch_up()
        if len(self.steps) % 5 == 0:
            assert sent_by(self._board) == sent_by(read_whole(self.service.store, lineage=self.service.url))

    def close(self) -> None:
        self.service.close()
        self._folder.cleanup()

    def play(self) -> None:
        """Run the history; a failure shows the actions before it."""
        acts = [method for name in dir(type(self)) if hasattr(method := getattr(type(self), name), "weight")]
        weights = [method.weight for method in acts]
        self.reached.begin()
        try:
            self.declare()
            self.check()
            for each in self.random.choices(acts, weights, k=self.STEPS):
                self.steps.append(each.__name__)
                each(self)
                self.check()
            self.end()
        except Exception as fault:
            fault.add_note("\n".join(self.steps))
            raise

    def end(self) -> None:
        """Run the last checks."""

    # Choices

    def pick(self, among: Sequence[T]) -> T:
        return self.random.choice(among)

    def some(self, among: Sequence[T], *, most: int) -> list[T]:
        return self.random.sample(among, self.random.randint(0, min(most, len(among))))

    def one(self, among: Sequence[T]) -> list[T]:
        """Choose one of them, if there is any."""
        return [self.pick(among)] if among else []

    def place(self) -> tuple[str, str | None, int]:
        """Choose a host, a group or none, and an update domain in it."""
        owner = self.pick(["web", "web", "web", "shop", "shop", None])
        return self.pick(HOSTS), owner, self.pick([0, 0, 1, 2]) if owner else 0

    def calendar(self) -> Calendar:
        """Choose windows around noon, when histories begin, and blackout days soon afterwards.

        Most projects have no windows, because little happens outside a window.
        """
        if self.random.random() < 0.7:
            return ALWAYS
        windows = [
            Window(
                days=frozenset(self.random.sample(range(7), self.random.randint(3, 7))),
                start=self.pick([time(12), time(12, 30), time(14), time(23)]),
                length=timedelta(minutes=self.pick([6, 20, 180])),
            )
            for _ in range(self.random.randint(1, 2))
        ]
        days = self.some([START.date() + timedelta(days=day) for day in range(4)], most=1)
        zone = self.pick([UTC, ZoneInfo("Europe/Berlin")])
        return Calendar(windows=tuple(windows), blackout=frozenset(days), zone=zone)

    # Queries

    def events(self) -> list[Event]:
        return sorted(self.service.everything().events.values(), key=lambda event: event.number)

    def members(self, event: Event) -> Sequence[str]:
        everyone = self.service.everything().machines.values()
        return sorted(member.name for member in everyone if member.group == event.group)

    def on_hosts(self) -> Sequence[tuple[str, str]]:
        """Return the machines on hosts, with their hosts."""
        members = self.service.everything().machines.values()
        return sorted((f"{member.name}", f"{member.host}") for member in members if member.host)

    def neighbours(self) -> Sequence[tuple[str, str]]:
        """Return the pairs of hosts that carry machines of one group."""
        carried: dict[str, set[str]] = {host: set() for host in HOSTS}
        for member in self.service.everything().machines.values():
            if member.host in carried and member.group in GROUPS:
                carried[member.host].add(member.group)
        return [(one, other) for one, other in combinations(HOSTS, 2) if carried[one] & carried[other]]

    def crowded_host(self) -> str:
        """Choose a host; prefer one with several machines of a group."""
        members = self.service.everything().machines.values()
        shares = Counter((f"{each.host}", each.group, each.update_domain) for each in members if each.host)
        crowded = sorted({host for (host, _, _), count in shares.items() if count > 1})
        return self.pick(crowded or HOSTS)

    def named(self, *, spot: bool = False) -> Sequence[str]:
        """Return machines of a scheduled event; prefer events with several machines."""
        known = self.service.everything().machines
        events = [event for event in self.events() if event.status is EventStatus.SCHEDULED]
        together = [event for event in events if len(event.resources) > 1]
        named = {each.machine for event in together or events for each in event.resources}
        return sorted(
            f"{known[id_].name}" for id_ in named if not spot or known[id_].priority is Priority.SPOT
        )

    def begun_outside(self) -> Sequence[Any]:
        orders = self.service.everything().orders.values()
        return sorted(order.id for order in orders if _is_running_outside(order))

    # Actions

    def do(self, what: Any, *args: Any, **more: Any) -> None:
        """Run an action; if it is refused, it must be with an error of forewarn, and change nothing."""
        words = [*map(str, args), *(f"{key}={value}" for key, value in more.items())]
        self.steps.append(f"    {self.service.clock.now():%d %H:%M:%S} {what.__name__} {' '.join(words)}")
        before = self.service.everything()
        try:
            what(*args, **more)
        except ForewarnError as refusal:
            assert str(refusal)  # noqa: PT017 - refusals are allowed here, not expected
            assert self.service.everything() == before
        self.service.tick()

    def declare(self) -> None:
        places = [self.place() for _ in range(self.random.randint(5, len(NAMES)))]
        spot, deaf = self.random.sample(NAMES, 6), self.some(NAMES, most=2)
        self.service.driver.failing = set(self.some(NAMES, most=2))
        defer = timedelta(minutes=self.pick([0, 10, 10, 40]))
        members = [
            machine(
                name,
                host,
                group=owner,
                domain=domain,
                priority=Priority.SPOT if name in spot else Priority.REGULAR,
                mobility=mobility_of(name, self._mobility.choice(MOBILITIES)),
            )
            for name, (host, owner, domain) in zip(NAMES, places, strict=False)
        ]
        # Many groups have the minimum notice, and no exception from update domains.
        patient, gang = self._delivery.random() < 0.2, self._delivery.random() < 0.7
        freezes = self._delivery.choice([0, 2, 3])
        groups = [
            replace(
                group(name, kind=kind),
                # A budget of all machines is refused, because none could ever be maintained.
                policy=GroupPolicy(
                    budget=max(0, min(self.pick([0, 0, 1, 2, 3]), size - 1)),
                    defer=defer,
                    notice=timedelta(minutes=30) if patient else None,
                    freezes_at_once=freezes if name == "web" else 0,
                    gang=gang and name == "shop",
                ),
            )
            for name, kind in zip(GROUPS, [GroupKind.AVAILABILITY_SET, GroupKind.SCALE_SET], strict=True)
            if (size := sum(member.group == name for member in members)) >= 0
        ]
        declared = fleet(*groups, *members, hosts=len(HOSTS))
        project = Project(name=DEFAULT_PROJECT, calendar=self.calendar())
        self.steps.append(f"    {places} {spot=} {deaf=} {groups} {project.calendar}")
        defaults = FleetDefaults(driver=self.DRIVER)
        self.service.apply(replace(declared, projects=(project,), defaults=defaults))
        for name in sorted({member.name for member in members} - set(deaf)):
            self.service.poll(name)

    def maintain(
        self,
        host: str,
        *,
        driver: str | None = None,
        deadline: int | None = None,
        emergency: int | None = None,
        **more: Any,
    ) -> None:
        at = None if deadline is None else self.service.clock.now() + timedelta(seconds=deadline)
        terms = OrderTerms(deadline=at, **more)
        if emergency is not None:
            terms = replace(terms, emergency="fire", notice=timedelta(seconds=emergency))
        request = OrderRequest(by="test", driver=driver or self.DRIVER, terms=terms)
        work = self.pick(WORKS)
        self.do(self.service.fleet.hosts.order_host, host, Action.MAINTENANCE, request, work=work)

    def approve_all(self) -> None:
        for event in self.events():
            self.do(self.service.orders.approve_event, event.id, by="test")

    def advance(self, seconds: float) -> None:
        if self.begun_outside():
            seconds = min(seconds, 7200)  # a week of questions to drivers takes long
        self.steps.append(f"    {seconds} s pass")
        self._deliver()
        self.service.advance(seconds=seconds)

    def _deliver(self) -> None:
        """Deliver events to machines; the deliveries of other servers become known late."""
        now = self.service.clock.now()
        for event in self.events():
            for named in event.resources:
                if self._delivery.random() < 0.2:
                    ago = timedelta(seconds=self._delivery.choice([0, 0, 60, 900]))
                    sent = self.service.polls.sent.setdefault(event.id, {})
                    sent.setdefault(named.machine, max(now - ago, event.announced_at))

    def put(self, name: str, host: str, owner: str | None, domain: int) -> None:
        self.do(self.service.put, name, host=HostName(host), group=owner, update_domain=domain)

    def hold(self, host: str | None) -> None:
        where = None if host is None else HostName(host)
        request = OrderRequest(by="test", reason="held")
        self.do(self.service.fleet.hosts.hold, request, project=None, host=where)
        self.look(self.service.everything())

    def release(self) -> None:
        for hold in self.service.fleet.views.holds():
            self.do(self.service.fleet.hosts.release, hold.id, by="test")

    def set_clock(self, span: timedelta) -> Absence:
        """Let time pass without ticks."""
        before = self.service.clock.now()
        self.steps.append(f"    {span} pass unseen")
        self.service.engine.save_time(before + span)
        self.service.clock.set(before + span)
        return Absence(since=before, until=before + span)

    # Orders of people

    @act(4)
    def orders_a_machine(self) -> None:
        actions = [
            *(Action.RESTART, Action.REDEPLOY, Action.FREEZE, Action.EVICT, Action.TERMINATE, Action.START)
        ]
        self.do(self.service.order, self.pick(NAMES), self.pick(actions))

    @act(2)
    def recommends_a_rebalance(self) -> None:
        self.do(self.service.order, self.pick(NAMES), Action.RECOMMEND_REBALANCE)

    @act(4)
    def maintains_a_host(self) -> None:
        self.maintain(
            self.pick(HOSTS),
            driver=self.pick([self.DRIVER, self.DRIVER, EXTERNAL]),
            deadline=self.pick([None, None, 60, 7200]),
            emergency=self.pick([None, None, 0, 60]),
        )

    @act(3)
    def orders_a_host(self) -> None:
        actions = [
            Action.DEGRADE,
            Action.FAIL,
            Action.RESTORE,
            Action.RESTORE,
            Action.CORDON,
            Action.UNCORDON,
        ]
        self.do(self.service.host_order, self.pick(HOSTS), self.pick(actions))

    @act(3)
    def maintains_two_hosts(self) -> None:
        """Maintain hosts with machines of one group, to reach update domains and budgets."""
        for pair in self.one(self.neighbours()):
            for host in pair:
                self.maintain(host)

    @act(3)
    def two_hosts_are_degraded(self) -> None:
        """Degrade hosts with machines of one group: their events are armed one after another."""
        self.tidies_up()
        for pair in self.one(self.neighbours()):
            for host in pair:
                self.do(self.service.host_order, host, Action.DEGRADE)
            if self.random.random() < 0.5:
                self.approve_all()
                self.look(self.service.everything())
            if self.random.random() < 0.2:
                self.hold(self.pick([None, *pair]))
            self.advance(self.pick([604_199, 604_200, 604_201, 604_500]))
            self.advance(self.pick([0, 1, 600, 1500]))
            self.release()

    @act(2)
    def an_emergency_comes_beside_others(self) -> None:
        """Order an emergency, which armed events and holds do not stop."""
        self.tidies_up()
        for one, other in self.one(self.neighbours()):
            self.maintain(one)
            despite = self.random.random() < 0.5
            if self.random.random() < 0.6:
                self.hold(self.pick([None, other]))
            self.maintain(other, emergency=self.pick([0, 60, 1800]), despite_hold=despite)
            self.advance(self.pick([0, 61]))
            self.release()

    @act(4)
    def all_are_frozen_at_once(self) -> None:
        """Maintain hosts of a gang, or of a group that allows several Freezes at once."""
        self.tidies_up()
        request = OrderRequest(by="test", driver=self.DRIVER)
        for host in HOSTS:
            self.do(self.service.fleet.hosts.order_host, host, Action.MAINTENANCE, request, work=Work.FREEZE)
        self.approve_all()

    @act(2)
    def maintains_to_the_end(self) -> None:
        """Let the stages of a host start one after another, approved or at their NotBefore."""
        approved = self.random.random() < 0.5
        self.maintain(self.pick(HOSTS))
        for _ in range(3):
            if approved:
                self.approve_all()
            self.advance(960)

    @act(2)
    def cancels_an_event(self) -> None:
        for event in self.one(self.events()):
            self.do(self.service.orders.cancel_event, event.id, by="test")

    @act(4)
    def decides_about_an_order(self) -> None:
        for order in self.one(sorted(self.service.everything().orders)):
            verb = self.pick(["cancel_order", "retry_order", "retry_order", "abandon_order"])
            self.do(getattr(self.service.orders, verb), order, by="test")

    @act(8)
    def tidies_up(self) -> None:
        """Abandon failed orders, restore hosts and let guests poll, so that new work is possible."""
        self.release()
        for id_, order in sorted(self.service.everything().orders.items()):
            verb = "abandon_order" if order.state == "failed" else "cancel_order"
            self.do(getattr(self.service.orders, verb), id_, by="test")
        for name, host in self.service.everything().hosts.items():
            remedy = Action.RESTORE if host.state in ("failed", "degraded", "lost") else Action.UNCORDON
            if host.state != "ok":
                self.do(self.service.host_order, name, remedy)
        self.advance(900)
        for machine_ in self.service.everything().machines.values():
            self.do(self.service.poll, machine_.name)

    @act(1)
    def sets_a_hold(self) -> None:
        self.hold(self.pick([None, *HOSTS]))

    @act(1)
    def releases_all_holds(self) -> None:
        self.release()

    @act(2)
    def holds_for_a_while(self) -> None:
        """Hold longer than announced work can wait."""
        self.hold(self.pick([None, *HOSTS]))
        self.advance(self.pick([899, 1860, 2701, 90_000]))
        self.release()

    # Guests

    @act(3)
    def approves(self) -> None:
        for event in self.some(self.events(), most=2):
            self.do(self.service.approve, self.pick(self.members(event)), event)

    @act(1)
    def approves_from_anywhere(self) -> None:
        """Rule 9: try to approve an event of another group."""
        known = {member.name: member for member in self.service.everything().machines.values()}
        for event in self.one(self.events()):
            others = sorted(name for name, each in known.items() if each.group != event.group)
            for name in self.one(others):
                before = self.service.everything()
                try:
                    self.service.approve(name, event)
                except ForewarnError:
                    assert self.service.everything() == before
                else:
                    raise AssertionError(f"{name} approved an event of {event.group}")

    @act(3)
    def polls(self) -> None:
        for name in self.some(NAMES, most=3):
            self.do(self.service.poll, name)

    @act(5)
    def defers(self) -> None:
        self.maintain(self.crowded_host())
        known = self.service.everything().machines
        for event in self.events():
            guest = known[self.pick(event.resources).machine]
            wanted = {event.id: self.pick([60, 600, 3600])}
            if guest.group in GROUPS and event.status is EventStatus.SCHEDULED:
                self.do(self.service.fleet.guests.defer, guest.id, wanted)

    @act(3)
    def falls_silent(self) -> None:
        """Order and hold a restart, while its guests stop polling."""
        for name, _ in self.one(self.on_hosts()):
            self.do(self.service.poll, name)
            self.do(self.service.order, name, Action.RESTART)
            self.hold(None)
            self.advance(self.pick([3600, 90_000, 90_000]))
            self.release()

    # Changes of machines

    @act(2)
    def declares_a_machine(self) -> None:
        """Add, move or regroup a machine."""
        self.put(self.pick(NAMES), *self.place())

    @act(2)
    def moves_a_machine(self) -> None:
        self.do(self.service.put, self.pick(NAMES), host=HostName(self.pick(HOSTS)))

    @act(1)
    def renames_a_machine(self) -> None:
        self.do(self.service.put, self.pick(NAMES), name=self.pick(NAMES))

    @act(1)
    def removes_a_machine(self) -> None:
        self.do(self.service.delete, self.pick(NAMES))

    @act(4)
    def comes_late(self) -> None:
        """Add machines to a host whose maintenance is announced: a standalone one, and others."""
        host, owner, domain = self.place()
        self.maintain(host)
        self.advance(self.pick([1, 840]))
        free = sorted(set(NAMES) - set(self.named()))
        for index, name in enumerate(self.random.sample(free, min(3, len(free)))):
            share = (owner, (domain + index) % 3) if owner and index else (None, 0)
            self.put(name, host, *share)
        if self.random.random() < 0.3:
            self.hold(host)
            self.advance(1920)
            self.release()

    @act(5)
    def is_done_in_one_go(self) -> None:
        """Maintain a whole host, and move machines of other update domains there before or after."""
        host, owner, domain = self.place()
        self.tidies_up()
        free = sorted(set(NAMES) - set(self.named()))
        others = self.random.sample(free, min(2, len(free)))
        terms = self.pick([{"together": "its board is swapped"}, {"whole": True}])
        if "whole" in terms:
            self.maintain(host, driver=self.pick([self.DRIVER, EXTERNAL]), **terms)
        for index, name in enumerate(others):
            self.put(name, host, owner or "web", (domain + index) % 3)
        if "together" in terms:
            self.maintain(host, **terms)
        self.approve_all()

    @act(8)
    def is_disturbed(self) -> None:
        """Order other work on a machine that an event names."""
        self.maintain(self.crowded_host())
        how = self.pick(["move", "remove", "evict", "evict", "evict", "evict", "fail"])
        for name in self.one(self.named(spot=how == "evict")):
            match how:
                case "move":
                    self.do(self.service.put, name, host=HostName(self.pick(HOSTS)))
                case "remove":
                    self.do(self.service.delete, name)
                case "evict":
                    self.do(self.service.order, name, Action.EVICT)
                case _:
                    self.do(self.service.host_order, f"{self.service.machine(name).host}", Action.FAIL)

    @act(2)
    def is_busy(self) -> None:
        """Order maintenance of a host while one of its machines is being restarted."""
        for name, host in self.one(self.on_hosts()):
            self.do(self.service.order, name, Action.RESTART)
            self.approve_all()
            self.maintain(host)
            self.approve_all()

    @act(2)
    def moves_past_a_cordoned_host(self) -> None:
        for _, host in self.one(self.on_hosts()):
            self.do(self.service.host_order, self.pick(HOSTS), Action.CORDON)
            request = OrderRequest(by="test")
            maintain = self.service.fleet.hosts.order_host
            self.do(maintain, host, Action.MAINTENANCE, request, work=Work.REDEPLOY)
            self.approve_all()

    # Failed and lost hosts

    @act(3)
    def fails_and_is_hard_to_fence(self) -> None:
        """Let a host fail, and perhaps its fence too, so that a person decides."""
        host, fence = self.pick(HOSTS), self.service.driver.failing
        driver = self.pick([self.DRIVER, self.DRIVER, EXTERNAL])
        fence.add(f"fence of {host}")
        self.do(
            self.service.fleet.hosts.order_host, host, Action.FAIL, OrderRequest(by="test", driver=driver)
        )
        self.advance(self.pick([1, 300]))
        self.look(self.service.everything())
        if self.random.random() < 0.5:
            fence.discard(f"fence of {host}")
        orders = self.service.everything().orders
        mine = sorted(id_ for id_, order in orders.items() if order.host == host and order.action == "fail")
        match self.pick(["vouch", "vouch", "retry", "abandon", "complete", "restore"]):
            case "vouch":
                self.vouch(host)
            case "restore":
                self.do(self.service.host_order, host, Action.RESTORE)
            case verb:
                for order in mine:
                    self.do(getattr(self.service.orders, f"{verb}_order"), order, by="test")
        fence.discard(f"fence of {host}")

    def vouch(self, host: str) -> None:
        request = OrderRequest(by="test", terms=OrderTerms(fenced="its plug is pulled"))
        self.do(self.service.fleet.hosts.order_host, host, Action.FAIL, request)

    @act(4)
    def does_not_come_back(self) -> None:
        """Let work on a host take too long; then the host comes back, or a person decides."""
        self.tidies_up()
        host, slow = self.pick(HOSTS), self.service.driver.slow
        slow.add(f"work of {host}")
        terms = OrderTerms(
            together="its board is swapped", mode=ServiceMode.IN_PLACE, emergency="fire", notice=timedelta()
        )
        request = OrderRequest(by="test", terms=terms)
        self.do(self.service.fleet.hosts.order_host, host, Action.SERVICE, request)
        self.advance(90)
        self.advance(3600)
        self.look(self.service.everything())
        self.decides_about_a_lost_host(host)
        slow.discard(f"work of {host}")
        self.advance(300)

    def decides_about_a_lost_host(self, host: str) -> None:
        match self.pick(["back", "back", "wait", "wait", "fail", "vouch", "abandon", "restore"]):
            case "wait":
                self.do(self.service.fleet.hosts.wait_for, host, by="test")
                self.advance(self.pick([60, 3600, 3601]))
            case "fail":
                self.do(self.service.host_order, host, Action.FAIL)
            case "vouch":
                self.vouch(host)
            case "restore":
                self.do(self.service.host_order, host, Action.RESTORE)
            case "abandon":
                for id_, order in sorted(self.service.everything().orders.items()):
                    if order.host == host:
                        self.do(self.service.orders.abandon_order, id_, by="test")

    # Drivers

    @act(1)
    def breaks_or_is_mended(self) -> None:
        self.service.driver.failing ^= {self.pick(NAMES)}

    @act(3)
    def is_done_outside(self) -> None:
        self.maintain(self.pick(HOSTS), driver=EXTERNAL)
        self.approve_all()
        for order in self.begun_outside():
            self.do(self.service.orders.complete_order, order, by="test")

    @act(2)
    def is_reported(self) -> None:
        """Report external work, or stay silent for long."""
        for order in self.one(self.begun_outside()):
            match self.pick(["complete", "complete", "fail", "heartbeat", "silence"]):
                case "complete":
                    self.do(self.service.orders.complete_order, order, by="test")
                case "fail":
                    self.do(self.service.orders.fail_order, order, by="test", why="it burns")
                case "heartbeat":
                    self.do(self.service.orders.heartbeat, order)
                case _:
                    self.service.real += 601
                    self.service.tick()

    # Time

    @act(3)
    def time_passes(self) -> None:
        self.advance(self.pick(SPANS))

    @act(4)
    def what_is_due_next_comes(self) -> None:
        for _ in range(self.random.randint(1, 5)):
            now = self.service.clock.now()
            due = self.service.engine.next_due(now)
            if due is not None:
                self.advance((due - now).total_seconds())

    @act(2)
    def is_away(self) -> None:
        """Stop the server for a while."""
        away = self.set_clock(timedelta(seconds=self.pick(SPANS)))
        self.service.engine.save_absence(away)
        self.service.tick()

    @act(1)
    def ticks_late(self) -> None:
        """Skip the tick at the moment that something is due."""
        self.set_clock(timedelta(milliseconds=self.pick([5, 900])))
        self.service.tick()

    @act(2)
    def the_clock_jumps(self) -> None:
        """Let the clock jump, so that guests lose notice."""
        jump = timedelta(minutes=self.pick([2, 20, 50, 1560]))
        away = self.set_clock(jump)
        self.service.engine.grant_grace(jump, away.until)
        self.service.engine.save_absence(away)
        self.service.tick()

    @act(1)
    def restarts(self) -> None:
        self.service.restart()
        self._checked()

    # Checks after each action

    def look(self, whole: Slice) -> None:
        """Record the situations that the history reached."""
        fresh = [] if whole.number == self._recorded else self.service.history(above=self._recorded)
        self._recorded = whole.number
        self.reached.look(Look(fleet=whole, records=fresh))

    def check(self) -> None:
        whole = self.service.everything()
        self.look(whole)
        assert self.service.clock.now() >= self.now
        self.now = self.service.clock.now()
        self.check_that_nothing_is_left_to_do(whole)
        self.check_board()
        begun = self.service.driver.begun
        assert len(begun) == len(set(begun)), "rule 8: a step was begun twice"
        self.check_hosts(whole)
        for event in whole.events.values():
            if event.status is EventStatus.STARTED:
                assert whole.orders[event.order].state in ("started", "failed")

    def check_that_nothing_is_left_to_do(self, before: Slice) -> None:
        """Rules 5, 10 and 11: a tick does everything that is possible, and a second one changes nothing."""
        for order in before.orders:
            # Look at everything, not only at what is due, to find lost wake-ups.
            self.service.work_on(order)
        after = self.service.everything()
        assert list(_differences(_settled(before), _settled(after))) == []
        assert misplaced(after) == []
        assert overdue(after, now=self.service.clock.now(), policy=self.service.policy) == []
        assert unexplained(after) == []

    def check_hosts(self, whole: Slice) -> None:
        """Check that a failed host ends up empty."""
        for host in whole.hosts.values():
            carried = [member for member in whole.machines.values() if member.host == host.name]
            busy = any(order.host == host.name for order in whole.orders.values())
            assert host.state != "failed" or busy or not carried


def _settled(fleet: Slice) -> Slice:
    """Return the fleet without the reasons of orders, which may change with other orders."""

    def settled(order: Order) -> Order:
        return replace(order, due_at=None, waiting=WAITS if order.waiting else ())

    return replace(fleet, orders={id_: settled(order) for id_, order in fleet.orders.items()})


def _differences(before: Slice, after: Slice) -> Iterator[str]:
    """Show the differences between two fleets."""
    if before == after:
        return
    for name in ("orders", "events", "machines", "groups", "hosts"):
        was, is_ = getattr(before, name), getattr(after, name)
        for id_ in was.keys() | is_.keys():
            if was.get(id_) != is_.get(id_):
                yield f"{name} {id_}: {was.get(id_)} -> {is_.get(id_)}"


def _is_running_outside(order: Order) -> bool:
    return any(order.driver_of(step) == EXTERNAL for step in order.driven)


def play(histories: type[H], seeds: Sequence[int], reached: Reached) -> None:
    """Run histories, and check that they reached every situation."""
    for seed in seeds:
        history = histories(seed, reached)
        try:
            history.play()
        finally:
            history.close()
    assert list(reached.too_seldom()) == [], str(reached)
