"""The engine: SQL statements of each kind of work, orders per second, and the latency of orders."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from statistics import median, quantiles
from typing import Any

from bench import fleets, guests, sql_counts
from bench.network import reached
from bench.operators import Operator
from bench.postgresql import commits_a_second, new_database, postgresql, server_processes
from bench.processes import Failed, ProcessorTime
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.versions import Version
from bench.workplace import Workplace

RACKS = 40
CALLERS = 16
# By number of callers. Each order has its own machine, because a machine accepts one user order at a time.
ORDERS = {1: 100, CALLERS: 640}
LEAST_HERE = {1: 100, CALLERS: 300}  # orders per second, with the database on the same computer
LEAST_FAR = {1: 50, CALLERS: 200}  # the same across a network


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The location of the database: this computer's disk, a simulated slow disk, or a network."""

    name: str  # "" for this computer's disk
    flush_after: int = 0  # microseconds that each commit waits, of the server and of the raw client
    round_trip: float = 0.0  # seconds added to each round trip
    note: str = ""


# The disk determines how long an order waits for its flush: a network volume needs some milliseconds.
HERE = Place(name="")
SLOW_DISK = Place(
    name="4 ms per flush", flush_after=4000, note="each commit waits 4 ms before its flush (commit_delay)"
)
FAR = Place(name="1 ms of network", round_trip=0.001, note="each round trip takes 1 ms more")
ROUNDS = 2
COMMITTING = 2.0  # seconds
ALONE_HOSTS = 1000  # hosts with one machine each; all their orders fall due together
ORDERS_A_SECOND = 8
# Short times, so that the orders of the rollout start and end while other orders are timed.
SOON_DUE = {
    "FOREWARN_TIMES_FREEZE_NOTICE": "10",
    "FOREWARN_TIMES_LINGER": "0",
    "FOREWARN_SIMULATED_MAINTENANCE": "5",
}
QUIET_FOR, LONGEST_BURST = 20.0, 150.0  # seconds
LOOK_EVERY = 2.0  # seconds between two checks of the rollout
MOST_RATIO = 3.0

Found = dict[str, Any]


def measure(work: Workplace) -> Findings:
    """Measure this version and, alternating with it, another version if one is given."""
    with postgresql(work.folder) as postgres:
        counted = {each.name: sql_counts.count(work, each, postgres) for each in work.versions}
        orders = {place.name: _order_rounds(work, postgres, place) for place in (HERE, SLOW_DISK, FAR)}
        waits = {each.name: _waits(work, each, postgres) for each in work.versions}
    rows = [
        *sql_counts.rows(counted),
        *(
            _ratio_row(callers, orders[place.name], place)
            for place in (HERE, SLOW_DISK)
            for callers in ORDERS
        ),
        *(_rate_row(callers, orders[HERE.name], HERE, least) for callers, least in LEAST_HERE.items()),
        *(_rate_row(callers, orders[FAR.name], FAR, least) for callers, least in LEAST_FAR.items()),
        _waits_row(waits),
    ]
    return Findings(rows=rows, raw={"sql": counted, "orders": orders, "waits": waits})


# Orders per second


def _order_rounds(work: Workplace, postgres: str, place: Place) -> dict[str, list[Found]]:
    """Measure all versions alternately; return the results of each round."""
    found: dict[str, list[Found]] = {each.name: [] for each in work.versions}
    for _ in range(ROUNDS):
        for version in work.versions:
            found[version.name].append(_order_rates(work, version, postgres, place))
    return found


def _order_rates(work: Workplace, version: Version, postgres: str, place: Place) -> Found:
    """Place orders as fast as possible, and compare the rate with the database's commits per second."""
    made = new_database(postgres, f"orders_{version.name}", flush_after=place.flush_after)
    fleet = work.folder / "orders.toml"
    fleet.write_text(fleets.toml(fleets.racks(RACKS)), encoding="utf-8")
    with (
        reached(made, folder=work.folder, round_trip=place.round_trip) as database,
        serving(
            work.folder,
            *("--fleet", str(fleet)),
            database=database,
            program=version.forewarn,
            settings={**fleets.NO_LIMITS, "FOREWARN_OPERATOR_CALLS": "0"},
        ) as server,
    ):
        found: Found = {}
        machines = _machines_of_listening_sets(server, sum(ORDERS.values()))
        for callers, orders in ORDERS.items():
            commits = [commits_a_second(database, seconds=COMMITTING)]
            mine, machines = machines[:orders], machines[orders:]
            of_server = ProcessorTime([server.pid])
            of_database = ProcessorTime(server_processes(work.folder))
            rate = _rate(server, mine, callers=callers)
            cpu = {"server": of_server.since() / orders, "database": of_database.since() / orders}
            commits.append(commits_a_second(database, seconds=COMMITTING))
            found[str(callers)] = {
                "orders": rate,
                "commits": median(commits),
                "ratio": rate / median(commits),
                "cpu": cpu,  # seconds for each order
            }
    shown = ", ".join(
        f"{callers}: {each['orders']:.0f}/s ({each['ratio']:.2f})" for callers, each in found.items()
    )
    work.log(
        ", ".join(
            filter(None, (f"{version.name}: orders per second by number of callers {shown}", place.name))
        )
    )
    return found


def _machines_of_listening_sets(server: Serving, wanted: int) -> list[str]:
    """Enable notice for sets; return names of their machines, one of each set after the other."""
    sets = -(-wanted // fleets.SET_SIZE)
    places = [divmod(number, fleets.SETS) for number in range(sets)]
    first = [rack * fleets.RACK + set_ * fleets.SET_SIZE for rack, set_ in places]
    guests.poll_once(server.port, [fleets.address(number) for number in first])
    members = range(fleets.SET_SIZE)
    return [f"vm-{rack}-{set_ * fleets.SET_SIZE + member}" for member in members for rack, set_ in places]


def _rate(server: Serving, machines: Sequence[str], *, callers: int) -> float:
    """Return the answered orders per second, with one outstanding order for each caller."""

    def order_all(mine: Sequence[str]) -> None:
        with closing(Operator(server.operator.port)) as operator:
            for name in mine:
                operator.post(f"/v1/machines/{name}/restart", headers={"Idempotency-Key": name})

    began = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(order_all, [machines[number::callers] for number in range(callers)]))
    return len(machines) / (time.perf_counter() - began)


def _rate_row(callers: int, rounds: dict[str, list[Found]], place: Place, least: int) -> Row:
    rates = {name: median(each[str(callers)]["orders"] for each in found) for name, found in rounds.items()}
    before = [f"{name} {rate:.0f}" for name, rate in rates.items() if name != "now"]
    return Row(
        what=", ".join(filter(None, ("orders per second, PostgreSQL", place.name, _callers_text(callers)))),
        measured=f"{rates['now']:.0f}",
        value=round(rates["now"], 1),
        target=f"≥ {least}",
        met=rates["now"] >= least,
        note="; ".join(filter(None, (place.note, *before))),
    )


def _callers_text(callers: int) -> str:
    return "one caller" if callers == 1 else f"{callers} callers"


def _ratio_row(callers: int, rounds: dict[str, list[Found]], place: Place) -> Row:
    ratios = {name: median(each[str(callers)]["ratio"] for each in found) for name, found in rounds.items()}
    now = rounds["now"]
    rate = median(each[str(callers)]["orders"] for each in now)
    commits = median(each[str(callers)]["commits"] for each in now)
    before = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if name != "now"]
    return Row(
        what=", ".join(
            filter(None, ("orders / raw commits, PostgreSQL", place.name, _callers_text(callers)))
        ),
        measured=f"{ratios['now']:.2f}",
        value=round(ratios["now"], 3),
        note="; ".join(
            filter(
                None,
                (
                    f"{rate:.0f} orders per second; {commits:.0f} commits per second of one client",
                    _where_time_goes(now, callers, target=LEAST_HERE[callers]),
                    place.note,
                    *before,
                ),
            )
        ),
    )


def _where_time_goes(rounds: list[Found], callers: int, *, target: float) -> str:
    """Describe the processor time of an order, and the time that the target allows."""
    each = [found[str(callers)]["cpu"] for found in rounds]
    server, database = (1000 * median(cpu[part] for cpu in each) for part in ("server", "database"))
    return (
        f"each needs {server:.2f} ms of the server's CPU and {database:.2f} ms of PostgreSQL's; "
        f"the target allows {1000 / target:.2f} ms"
    )


# The latency of an order while many orders are due


def _waits(work: Workplace, version: Version, postgres: str) -> Found:
    """Measure the latency of orders on an idle server, and while 1,000 orders fall due."""
    fleet = work.folder / "due.toml"
    fleet.write_text(fleets.toml(fleets.alone(ALONE_HOSTS)), encoding="utf-8")
    with serving(
        work.folder,
        *("--fleet", str(fleet)),
        database=new_database(postgres, f"due_{version.name}"),
        program=version.forewarn,
        settings={**fleets.NO_LIMITS, **SOON_DUE},
    ) as server:
        # These machines are on a host outside the rollout. Their orders fall due after the measurement.
        paths = (f"/v1/machines/apart-{number}/restart" for number in count())
        idle = _order_steadily(server, paths, until=lambda waited: waited >= QUIET_FOR)
        hosts = [f"host-{number}" for number in range(ALONE_HOSTS)]
        wanted = {"hosts": hosts, "action": "freeze", "hosts_at_once": len(hosts)}
        with ThreadPoolExecutor(1) as pool, closing(Operator(server.operator.port)) as other:
            # On its own thread, so that its requests delay no order.
            rolled_out = pool.submit(_roll_out, other, wanted)
            busy = _order_steadily(
                server, paths, until=lambda waited: waited >= QUIET_FOR and rolled_out.done()
            )
            rolled_out.result()
    found = {"idle": _p99(idle), "busy": _p99(busy), "orders": len(busy), "longest": max(busy)}
    found["ratio"] = found["busy"] / found["idle"]
    shown = f"{found['idle'] * 1000:.0f} ms idle, {found['busy'] * 1000:.0f} ms while {ALONE_HOSTS} are due"
    work.log(
        f"{version.name}: p99 of an order {shown} ({len(busy)} orders, maximum {max(busy) * 1000:.0f} ms)"
    )
    return found


def _order_steadily(server: Serving, paths: Iterator[str], *, until: Callable[[float], bool]) -> list[float]:
    """Place orders at a fixed rate, without waiting for answers; return the latency of each.

    If each order waited for the previous answer, a busy server would delay only one order at a time.
    """
    with ThreadPoolExecutor(CALLERS) as pool:
        began, placed = time.perf_counter(), []
        for number in count():
            at = began + number / ORDERS_A_SECOND
            time.sleep(max(0.0, at - time.perf_counter()))
            if until(time.perf_counter() - began):
                break
            placed.append(pool.submit(_order_at, server, next(paths), at))
        return [each.result() for each in placed]


def _order_at(server: Serving, path: str, at: float) -> float:
    """Place an order, and return the seconds since its planned time."""
    with closing(Operator(server.operator.port)) as operator:
        operator.post(path)
    return time.perf_counter() - at


def _roll_out(operator: Operator, wanted: Found) -> None:
    """Start a rollout, and wait until it ends, for LONGEST_BURST at most."""
    until = time.perf_counter() + LONGEST_BURST
    operator.post("/v1/rollouts", wanted)
    while operator.get("/v1/rollouts?open=true")["rollouts"] and time.perf_counter() < until:
        time.sleep(LOOK_EVERY)


def _waits_row(waits: dict[str, Found]) -> Row:
    now = waits["now"]
    before = [f"{name} {each['ratio']:.1f}" for name, each in waits.items() if name != "now"]
    shown = f"{now['busy'] * 1000:.0f} to {now['idle'] * 1000:.0f} ms"
    return Row(
        what=f"order p99, {ALONE_HOSTS:,} orders due / idle",
        measured=f"{now['ratio']:.1f}",
        value=round(now["ratio"], 2),
        target=f"≤ {MOST_RATIO:.0f}",
        met=now["ratio"] <= MOST_RATIO,
        note="; ".join([shown, *before]),
    )


def _p99(seconds: Sequence[float]) -> float:
    if len(seconds) < 100:
        raise Failed(f"{len(seconds)} orders are too few for a p99")
    return quantiles(seconds, n=100)[98]
