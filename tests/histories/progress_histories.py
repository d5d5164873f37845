"""Histories in which hosts wait for each other; once nothing blocks them, all announced work starts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from forewarn.core.basic_types import DEFAULT_PROJECT, Action, EventStatus, GroupKind, Kind, OrderState
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.project import Project
from tests.helpers.service.harness import fleet, group, machine
from tests.histories.histories import GROUPS, HOSTS, NAMES, Histories, act
from tests.histories.situations import Look, Situation

# Each host carries one update domain of both groups, so that any two wait for each other.
CROSSED = [(f"m-{place}", HOSTS[place // 2], GROUPS[place % 2], place // 2) for place in range(6)]
# How often an announcement may be withdrawn although nothing blocks it: it may be late already.
MOST_WITHDRAWALS = 1
# Enough for a week's notice and several hosts one after another.
HORIZON = timedelta(days=30)
# More than any history needs.
MOST_LOOKS = 1000


class ProgressHistories(Histories):
    """A short history, because it runs until all work is done."""

    STEPS = 5

    def declare(self) -> None:
        groups = [
            replace(
                group(name, kind=GroupKind.AVAILABILITY_SET),
                policy=GroupPolicy(
                    notice=timedelta(minutes=self.pick([15, 60, 60])),
                    defer=timedelta(minutes=self.pick([0, 10])),
                    budget=self.pick([0, 0, 1]),
                ),
            )
            for name in GROUPS
        ]
        members = [machine(name, host, group=owner, domain=domain) for name, host, owner, domain in CROSSED]
        self.steps.append(f"    {groups}")
        declared = fleet(*groups, *members, hosts=len(HOSTS))
        projects = (Project(name=DEFAULT_PROJECT),)
        self.service.apply(replace(declared, projects=projects, defaults=FleetDefaults(driver=self.DRIVER)))
        for member in members:
            self.service.poll(member.name)

    @act(300)
    def hosts_cross(self) -> None:
        """Degrade hosts with common groups, and approve some of their events."""
        self.tidies_up()
        terms = self.pick([{}, {"whole": True}])
        for host in self.random.sample(HOSTS[:3], self.pick([2, 3])):
            if self.random.random() < 0.3:
                self.do(self.service.host_order, host, Action.DEGRADE)
            else:
                self.maintain(host, **terms)
        self.some_approve()
        if self.random.random() < 0.4:
            self.machines_come_late()
        self.advance(self.pick([1, 840, 900, 2700]))

    def some_approve(self) -> None:
        for event in self.events():
            if event.status is EventStatus.SCHEDULED and self.random.random() < 0.4:
                self.do(self.service.approve, self.pick(self.members(event)), event)
        self.look(self.service.everything())

    def machines_come_late(self) -> None:
        """Add machines to several hosts, each of an update domain of another host."""
        for name, host in zip(NAMES[6:], self.random.sample(HOSTS[:3], 3), strict=True):
            self.put(name, host, self.pick(GROUPS), self.random.randrange(3))

    def end(self) -> None:
        """Remove all obstacles; then orders end, and none is announced again and again."""
        if self.random.random() < 0.7:
            self.tidies_up()
            for host in HOSTS[:2]:
                self.maintain(host)
        self.steps.append("nothing hinders anything")
        self.release()
        for name in (self.service.driver.slow, self.service.driver.unknown, self.service.driver.failing):
            name.clear()
        # One machine of each host, of another group than on the next host.
        first_group = self.random.randrange(2)
        eager = [NAMES[2 * place + (first_group + place) % 2] for place in range(3)]
        first, until = self._recorded, self.service.clock.now() + HORIZON
        for _ in range(MOST_LOOKS):
            self.people_do_their_part()
            self.approve_as(eager)
            now = self.service.clock.now()
            due = self.service.engine.next_due(now)
            if due is None or due > until:
                break
            self.advance((due - now).total_seconds())
            self.check()
        for order, withdrawals in self.withdrawals(since=first).items():
            assert withdrawals <= MOST_WITHDRAWALS, f"order {order} was announced again {withdrawals} times"
        orders = self.service.everything().orders.values()
        announced = [order for order in orders if order.state is OrderState.ANNOUNCED]
        assert announced == [], "what was announced has not started"

    def approve_as(self, eager: Sequence[str]) -> None:
        """Let the same machines approve all their events, as often as they are announced."""
        for event in self.events():
            names = [named.name for named in event.resources if named.name in eager]
            if names and event.status is EventStatus.SCHEDULED and not event.approved:
                self.do(self.service.approve, names[0], event)

    def people_do_their_part(self) -> None:
        """Report external work, retry failed orders, and resolve failed hosts."""
        for id_ in self.begun_outside():
            self.do(self.service.orders.complete_order, id_, by="test")
        for name, host in self.service.everything().hosts.items():
            if host.state in ("failed", "lost"):
                self.vouch(name)
                self.advance(300)
                self.do(self.service.host_order, name, Action.RESTORE)
        for id_, order in sorted(self.service.everything().orders.items()):
            if order.state is OrderState.FAILED:
                self.do(self.service.orders.abandon_order, id_, by="test")

    def withdrawals(self, *, since: int) -> Mapping[str, int]:
        """Count the withdrawn announcements after a record."""
        late = {
            (record.order, record.at)
            for record in self.service.history(above=since)
            if record.kind == Kind.EVENT_WITHDRAWN and record.order is not None
        }
        return Counter(f"{order}" for order, _ in late)


def _approved_and_waits(look: Look) -> bool:
    return look.waits("approved, waits for")


def _armed_by_the_approval_of_another(look: Look) -> bool:
    return any(
        event.armed and not event.approved and other.approved
        for event in look.fleet.events.values()
        for other in look.fleet.events.values()
        if (event.order, event.stage) == (other.order, other.stage) and event.status is EventStatus.SCHEDULED
    )


PROGRESS_SITUATIONS: Mapping[str, Situation] = {
    "an approved event waits for its stage": _approved_and_waits,
    "an approval arms another event": _armed_by_the_approval_of_another,
}
