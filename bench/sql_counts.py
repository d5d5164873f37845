"""Count the SQL statements of an order, an approval and a rollout: PostgreSQL, 4,000 machines."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench import fleets, guests
from bench.postgresql import new_database
from bench.processes import Failed
from bench.report import Row
from bench.service import Serving, serving
from bench.versions import Version
from bench.workplace import Workplace

RACKS = 40
ROUNDS = 9
ROLLED_OUT = 100  # hosts
DAY = 86_400
# Seconds without a change of the counts after which the server counts as idle.
SETTLED_AFTER = 0.3
MOST_SECONDS = 120.0

Counts = dict[str, float]
# The most statements, write transactions and read transactions of each kind of work.
TARGETS: dict[str, tuple[int, int, int | None]] = {
    "an order": (20, 1, 1),
    "an approval with its start": (35, 2, None),
    "a host of a rollout": (30, 1, None),
}


def count(work: Workplace, version: Version, postgres: str) -> dict[str, Counts]:
    """Count the SQL of an order, an approval and a host of a rollout, with one version."""
    counts_socket = work.folder / f"{version.name}.counts"
    fleet = work.folder / "counted.toml"
    fleet.write_text(fleets.toml(fleets.racks(RACKS)), encoding="utf-8")
    with serving(
        work.folder,
        *("--fleet", str(fleet), "--clock", "manual"),
        database=new_database(postgres, f"counted_{version.name}"),
        program=version.counted(counts_socket),
        settings=fleets.NO_LIMITS,
    ) as server:
        found = {
            "an order": _counted_rounds(counts_socket, lambda number: _order(server, number)),
            "an approval with its start": _counted_rounds(
                counts_socket, lambda number: _approve(server, number)
            ),
            "a host of a rollout": _rollout(server, counts_socket),
        }
    for what, counts in found.items():
        work.log(f"{version.name}: {what}: " + ", ".join(f"{each:g} {kind}" for kind, each in counts.items()))
    return found


def rows(found: dict[str, dict[str, Counts]]) -> list[Row]:
    """Compare this version's counts with the targets; the other version's counts become notes."""
    return [_row(what, {name: counts[what] for name, counts in found.items()}) for what in TARGETS]


def _row(what: str, by_version: dict[str, Counts]) -> Row:
    statements, writes, reads = TARGETS[what]
    now = by_version["now"]
    met = now["statements"] <= statements and now["writes"] <= writes
    met = met and (reads is None or now["reads"] <= reads)
    target = f"≤ {statements}, {writes} write" + ("s" if writes > 1 else "")
    return Row(
        what=f"SQL statements: {what}",
        measured=_shown(now),
        value=now["statements"],
        target=target if reads is None else f"{target}, {reads} read",
        met=met,
        note="; ".join(f"{name} {_shown(counts)}" for name, counts in by_version.items() if name != "now"),
    )


def _shown(counts: Counts) -> str:
    return f"{counts['statements']:g} ({counts['writes']:g} writes, {counts['reads']:g} reads)"


def _counted_rounds(counts_socket: Path, act: Callable[[int], Callable[[], None]]) -> Counts:
    """Prepare and run an action several times; return the median counts."""
    rounds = []
    for number in range(ROUNDS + 1):
        do = act(number)
        before = _settled(counts_socket)
        do()
        after = _settled(counts_socket)
        rounds.append({kind: after[kind] - before[kind] for kind in after})
    # The first round does not count, because it also fills caches.
    return {kind: median(each[kind] for each in rounds[1:]) for kind in rounds[0]}


def _order(server: Serving, number: int) -> Callable[[], None]:
    """Prepare a restart in an enabled group, with an Idempotency-Key."""
    _enable(server, 0)
    path = f"/v1/machines/vm-0-{number}/restart"
    return lambda: server.operator.post(path, headers={"Idempotency-Key": f"order-{number}"})


def _approve(server: Serving, number: int) -> Callable[[], None]:
    """Prepare a guest's approval of a restart, which then starts."""
    rack = 1 + number
    _enable(server, rack)
    event = server.operator.post(f"/v1/machines/vm-{rack}-0/restart")["event"]["id"]
    body = json.dumps({"StartRequests": [{"EventId": event}]})
    caller = guests.call(server.port, source=fleets.address(rack * fleets.RACK))
    request = guests.approval(server.port, body)

    def approve() -> None:
        answered = guests.ask(caller, request)
        if not answered.startswith(b"HTTP/1.1 200"):
            raise Failed(f"an approval was refused: {answered[:200]!r}")
        guests.hang_up([caller])

    return approve


def _enable(server: Serving, rack: int) -> None:
    """Enable notice for the first set of a rack."""
    guests.poll_once(server.port, [fleets.address(rack * fleets.RACK)])


def _rollout(server: Serving, counts_socket: Path) -> Counts:
    """Count a whole rollout over hosts whose groups are not enabled; return the counts per host."""
    first = 20 * fleets.HOSTS
    hosts = [f"host-{number}" for number in range(first, first + ROLLED_OUT)]
    before = _settled(counts_socket)
    wanted = {"hosts": hosts, "action": "freeze", "hosts_at_once": 20}
    rollout = server.operator.post("/v1/rollouts", wanted)["rollout"]["id"]
    server.operator.post("/v1/clock/advance", {"seconds": DAY})
    after = _settled(counts_socket)
    state = server.operator.get(f"/v1/rollouts/{rollout}")["rollout"]["state"]
    if state != "done":
        raise Failed(f"the rollout is {state} after a day")
    return {kind: round((after[kind] - before[kind]) / ROLLED_OUT, 2) for kind in after}


def _settled(counts_socket: Path) -> dict[str, int]:
    """Wait until the counts no longer change; return them."""
    deadline, last = time.monotonic() + MOST_SECONDS, _counts(counts_socket)
    while time.monotonic() < deadline:
        time.sleep(SETTLED_AFTER)
        now = _counts(counts_socket)
        if now == last:
            return now
        last = now
    raise Failed(f"the server is still busy after {MOST_SECONDS:.0f} s")


def _counts(counts_socket: Path) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(counts_socket))
        counts: dict[str, Any] = json.loads(caller.makefile().read())
        return counts
