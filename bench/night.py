"""A night of maintenance: five hundred hosts and ten thousand machines on the manual clock.

1 % of the moves fail, three hosts degrade, one host never comes back, and the database fails for two hours.
`make bench-night` prints a table and draws the night.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from tests.helpers.service.harness import Service

from bench.computer import this_computer
from bench.night_audit import Night, broken
from bench.night_drawing import Span, draw
from bench.night_driver import NightDriver
from bench.night_fleet import HOSTS, SEED, night_fleet
from bench.report import Findings, Report, Row, fill_in, show
from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.basic_types import (
    Action,
    HostName,
    HostState,
    HostTask,
    ServiceMode,
    StageKind,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict, Unavailable
from forewarn.core.filters import EventFilter, OrderFilter
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import FailureLimit, Rollout, RolloutState, RolloutTerms
from forewarn.core.orders.order_requests import OrderRequest

EVENING = datetime(2026, 11, 16, 20, 0, tzinfo=UTC)
# A whole rack. The planner empties half of it at a time, and the other half takes the machines.
AT_ONCE = 100
MINUTES, LONGEST = 5, timedelta(days=9)
FAILING = 0.01
DEGRADED = {timedelta(minutes=50): "host-203", timedelta(hours=3): "host-318", timedelta(hours=5): "host-477"}
LOST = HostName("host-142")
DATABASE_OUTAGE = (timedelta(hours=2, minutes=30), timedelta(hours=4, minutes=30))
OPERATOR = OrderRequest(by="operator", reason="new firmware")
# Targets.
SCATTERED_WAVES, ALIGNED_WAVES, PLANNED_WITHIN, RUN_WITHIN = 8, 6, 2.0, 180.0


def main() -> int:
    """Play the night, print a table, and draw it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--docs", type=Path, help="write night.svg and the table of night.md to this folder")
    options.add_argument("--seed", type=int, default=SEED)
    arguments = options.parse_args(sys.argv[1:])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="forewarn-night-") as folder:
        placement = _placement(Path(folder), arguments.seed)
        night = play(Path(folder), arguments.seed)
    rows = [*placement, *_rows(night)]
    report = Report(
        computer=this_computer(),
        seconds=time.perf_counter() - began,
        parts={"night": Findings(rows=rows)},
    )
    show(report, Console())
    for violation in night.broken[:20]:
        print(f"broken: {violation}")
    if arguments.docs is not None:
        (arguments.docs / "night.svg").write_text(_drawing(night), encoding="utf-8")
        fill_in(arguments.docs / "night.md", _table(rows))
    return 1 if report.missed else 0


# The placement of machines, and the number of waves


def _placement(folder: Path, seed: int) -> list[Row]:
    with _service(folder / "scattered.db") as service:
        service.apply(night_fleet(aligned=False, seed=seed))
        before = _waves(service)
        _fit(service)
        after = _waves(service)
        planned = _time_to_plan(service)
    with _service(folder / "aligned.db") as service:
        service.apply(night_fleet(aligned=True, seed=seed))
        aligned = _waves(service)
        halved = service.roll(work=Work.REDEPLOY, hosts_at_once=AT_ONCE)
        _run(service, halved)
        moved = _waves(service)
    return [
        _waves_row(
            "waves, placed at random, after `fleet domains --fit`",
            after,
            most=SCATTERED_WAVES,
            note=f"{before} before",
        ),
        _waves_row("waves, update domains aligned with racks", aligned, most=ALIGNED_WAVES),
        _waves_row(
            "waves after a redeploy of all hosts",
            moved,
            most=ALIGNED_WAVES,
            note=f"with {AT_ONCE} hosts at once, a whole rack; the redeploy had {len(halved.waves)} waves",
        ),
        Row(
            what="planning time",
            measured=f"{planned:.2f} s",
            value=round(planned, 3),
            target=f"< {PLANNED_WITHIN:.0f} s",
            met=planned < PLANNED_WITHIN,
            note="for the fleet placed at random; the plan has reasons and times",
        ),
    ]


def _waves_row(what: str, waves: int, *, most: int, note: str = "") -> Row:
    return Row(what=what, measured=f"{waves}", value=waves, target=f"≤ {most}", met=waves <= most, note=note)


def _waves(service: Service) -> int:
    """Count the waves of work that moves no machine. Only hosts that exclude each other matter."""
    request = RolloutRequest(hosts=None, work=Work.REBOOT, hosts_at_once=HOSTS, by="operator", reason="")
    return len(service.rollouts.plan(request).rollout.waves)


def _time_to_plan(service: Service) -> float:
    began = time.perf_counter()
    service.rollouts.plan(_wanted(at_once=HOSTS))
    return time.perf_counter() - began


def _fit(service: Service) -> None:
    declarations = service.fleet.declarations
    application = declarations.application(declarations.domains(None, by="operator").fleet, by="operator")
    while not application.over:
        application.apply_next(service.transact)


def _wanted(at_once: int = AT_ONCE) -> RolloutRequest:
    terms = RolloutTerms(mode=ServiceMode.EVACUATE, max_failures=FailureLimit(amount=2, percent=True))
    return RolloutRequest(
        hosts=None, work=Work.HOST, hosts_at_once=at_once, terms=terms, by="operator", reason="new firmware"
    )


# The night


@dataclass(slots=True, kw_only=True)
class Played:
    """The results of a night."""

    rollout: Rollout
    seconds: float = 0.0
    done_at: datetime | None = None  # when all hosts without another order were done
    interventions: list[str] = field(default_factory=list)  # decisions of the simulated operator
    refused_ticks: int = 0
    events: list[Event] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    moves: int = 0
    failed: int = 0


def play(folder: Path, seed: int) -> Played:
    """Play a night and the following days, until the rollout ends."""
    with _service(folder / "night.db") as service:
        driver = NightDriver(failing=FAILING, seed=seed)
        driver.never_back = frozenset({LOST})
        service.driver = driver  # type: ignore[assignment]
        service.wire(service.store)
        service.apply(night_fleet(aligned=True, seed=seed))
        began = time.perf_counter()
        begun = service.rollouts.begin(_wanted())
        played = Played(rollout=begun.rollout)
        trouble = dict(DEGRADED)
        while service.clock.now() < EVENING + LONGEST:
            passed = service.clock.now() - EVENING
            for at in [each for each in trouble if each <= passed]:
                with suppress(Conflict):  # work is in progress on the host; try again later
                    service.fleet.hosts.order_host(trouble[at], Action.DEGRADE, OPERATOR)
                    del trouble[at]
            if DATABASE_OUTAGE[0] <= passed < DATABASE_OUTAGE[1]:
                played.refused_ticks += _without_database(service, folder / "night.db")
            service.advance(minutes=MINUTES if passed < timedelta(days=1) else 60)
            played.rollout = _reread(service, played.rollout)
            if played.done_at is None and _only_blocked_hosts_left(service, played.rollout):
                played.done_at = service.clock.now()
            if not played.rollout.open:
                break
            if played.rollout.state is RolloutState.PAUSED:
                played.interventions += _decide(service, played.rollout)
        played.seconds = time.perf_counter() - began
        played.moves, played.failed = driver.moves, driver.failed
        played.events, played.orders = list(_all_events(service)), list(_all_orders(service))
        played.broken = broken(
            Night(
                events=played.events,
                orders={order.id: order for order in played.orders},
                policy=service.policy,
            )
        )
        return played


def _reread(service: Service, rollout: Rollout) -> Rollout:
    """Read a rollout from the store. The view of the API would be too expensive here."""
    with service.store.read() as snapshot:
        return snapshot.rollouts.find(rollout.id) or rollout


def _only_blocked_hosts_left(service: Service, rollout: Rollout) -> bool:
    """Return whether all remaining hosts wait for another order."""
    return len(rollout.hosts_not_done) <= len(DEGRADED) + 1 + len(rollout.abandoned)


def _without_database(service: Service, database: Path) -> int:
    """Let the outage pass while another connection locks the database; return the number of failed ticks."""
    refused = 0
    with sqlite3.connect(database, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        until = EVENING + DATABASE_OUTAGE[1]
        while service.clock.now() < until:
            # Large steps, because each tick waits for seconds before it fails.
            service.clock.set(min(service.clock.now() + timedelta(hours=1), until))
            try:
                service.tick()
            except Unavailable:
                refused += 1
        other.execute("ROLLBACK")
    return refused


def _decide(service: Service, rollout: Rollout) -> Iterator[str]:
    """Decide as an operator: fail each lost host, and resume the rollout."""
    lost = [
        host.name
        for host in service.everything().hosts.values()
        if host.state is HostState.LOST and host.name in rollout.hosts
    ]
    for host in lost:
        service.fleet.hosts.order_host(host, Action.FAIL, OPERATOR)
        yield f"{host} was lost: it was fenced and its machines were recovered"
    if not lost:
        yield f"paused: {rollout.why}"
    service.tick()
    service.rollouts.resume(rollout.id, by="operator")


def _run(service: Service, rollout: Rollout) -> None:
    for _ in range(400):
        service.advance(hours=1)
        if not service.rollout(rollout).open:
            return
    raise AssertionError(f"the rollout did not end: {service.rollout(rollout).waiting[:3]}")


@contextmanager
def _service(database: Path) -> Iterator[Service]:
    service = Service(f"sqlite:///{database}", start=EVENING)
    try:
        yield service
    finally:
        service.close()


def _all_events(service: Service) -> Iterator[Event]:
    after: str | None = None
    while True:
        with service.store.read() as snapshot:
            found, after = snapshot.work.events(EventFilter(past=True), after=after, limit=1000)
        yield from found
        if after is None:
            return


def _all_orders(service: Service) -> Iterator[Order]:
    after: str | None = None
    while True:
        with service.store.read() as snapshot:
            found, after = snapshot.work.orders(OrderFilter(), after=after, limit=200)
        yield from found
        if after is None:
            return


# The results


def _rows(night: Played) -> list[Row]:
    done, lost = len(night.rollout.hosts_done), len(night.rollout.abandoned)
    others = [each for each in night.interventions if "was lost" not in each]
    started = [event for event in night.events if event.started_at is not None]
    machines = sum(len(event.resources) for event in started)
    until = "not yet" if night.done_at is None else f"{night.done_at:%d %H:%M}"
    return [
        Row(what="hosts done", measured=f"{done} of {len(night.rollout.hosts)}", note=f"{lost} abandoned"),
        Row(what="all hosts without another order done", measured=until, note=f"started {EVENING:%d %H:%M}"),
        Row(
            what="interventions",
            measured=f"{len(night.interventions)}",
            value=len(night.interventions),
            target="only the lost host",
            met=not others and len(night.interventions) == 1,
            note="; ".join(night.interventions),
        ),
        Row(
            what="rule violations",
            measured=f"{len(night.broken)}",
            value=len(night.broken),
            target="0",
            met=not night.broken,
            note=f"in {len(night.events):,} events for {machines:,} machines",
        ),
        Row(
            what="moves",
            measured=f"{night.moves:,}",
            note=f"{night.failed} failed; {night.refused_ticks} ticks failed without the database",
        ),
        Row(
            what="simulation time",
            measured=f"{night.seconds:.0f} s",
            value=round(night.seconds, 1),
            target=f"< {RUN_WITHIN:.0f} s",
            met=night.seconds < RUN_WITHIN,
        ),
    ]


def _table(rows: Iterable[Row]) -> str:
    head = ["| what | measured | target | note |", "|---|---|---|---|"]
    lines = [f"| {row.what} | {row.measured} | {row.target} | {row.note} |" for row in rows]
    return "\n".join([f"Measured on: {this_computer()}.", "", *head, *lines])


def _drawing(night: Played) -> str:
    end = (night.done_at or EVENING + timedelta(hours=12)) + timedelta(hours=1)
    hosts = [host for wave in night.rollout.waves for host in wave.hosts]
    hosts += [host for host in night.rollout.hosts if host not in hosts]
    outage = (EVENING + DATABASE_OUTAGE[0], EVENING + DATABASE_OUTAGE[1])
    return draw(
        list(_spans(night.orders, set(hosts), end)),
        hosts=hosts,
        begin=EVENING,
        end=end,
        outages=[outage],
        title="A night of maintenance: 500 hosts in the order of their waves",
    )


def _spans(orders: Iterable[Order], hosts: set[HostName], end: datetime) -> Iterator[Span]:
    for order in orders:
        if order.host not in hosts or order.announced_at is None:
            continue
        until = order.ended_at or end
        if order.action is not Action.SERVICE:
            yield Span(host=order.host, kind="failed", since=order.announced_at, until=until)
            continue
        leaving = next((stage.started_at for stage in order.stages if stage.kind is StageKind.EVACUATE), None)
        work = next((step for step in order.host_steps if step.task is HostTask.WORK), None)
        begun = work.begun_at if work is not None else None
        yield Span(
            host=order.host, kind="announced", since=order.announced_at, until=leaving or begun or until
        )
        if leaving is not None:
            yield Span(host=order.host, kind="moving", since=leaving, until=begun or until)
        if begun is not None:
            back = work is not None and work.state is StepState.DONE
            over = (work.ended_at if work is not None else None) or until
            yield Span(host=order.host, kind="work" if back else "failed", since=begun, until=over)


if __name__ == "__main__":
    sys.exit(main())
