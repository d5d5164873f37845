"""How much SQL things take: counted in a server of 4,000 machines, on PostgreSQL."""

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
# After something was answered, the server may still be at what follows from it.
SETTLED_AFTER = 0.3
MOST_SECONDS = 120.0

Counts = dict[str, float]
# What is counted, and what it may take: statements, write transactions, read transactions.
TARGETS: dict[str, tuple[int, int, int | None]] = {
    "an order": (20, 1, 1),
    "an approval with its start": (35, 2, None),
    "a host of a rollout": (30, 1, None),
}


def count(work: Workplace, version: Version, postgres: str) -> dict[str, Counts]:
    """Count what an order, an approval and a host of a rollout take in one version."""
    ear = work.folder / f"{version.name}.counts"
    fleet = work.folder / "counted.toml"
    fleet.write_text(fleets.toml(fleets.racks(RACKS)), encoding="utf-8")
    with serving(
        work.folder,
        *("--fleet", str(fleet), "--clock", "manual"),
        database=new_database(postgres, f"counted_{version.name}"),
        program=version.counted(ear),
        settings=fleets.NO_LIMITS,
    ) as server:
        found = {
            "an order": _counted_rounds(ear, lambda number: _order(server, number)),
            "an approval with its start": _counted_rounds(ear, lambda number: _approve(server, number)),
            "a host of a rollout": _rollout(server, ear),
        }
    for what, counts in found.items():
        work.say(f"{version.name}: {what}: " + ", ".join(f"{each:g} {kind}" for kind, each in counts.items()))
    return found


def rows(found: dict[str, dict[str, Counts]]) -> list[Row]:
    """Hold the present version's counts against what they may be; by version and what was counted."""
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


def _counted_rounds(ear: Path, act: Callable[[int], Callable[[], None]]) -> Counts:
    """Prepare and do a thing several times; returns the medians of what each took."""
    rounds = []
    for number in range(ROUNDS + 1):
        do = act(number)
        before = _settled(ear)
        do()
        after = _settled(ear)
        rounds.append({kind: after[kind] - before[kind] for kind in after})
    # The first time, things are loaded that stay.
    return {kind: median(each[kind] for each in rounds[1:]) for kind in rounds[0]}


def _order(server: Serving, number: int) -> Callable[[], None]:
    """Order a restart in a group that listens, with an Idempotency-Key."""
    _enable(server, 0)
    path = f"/v1/machines/vm-0-{number}/restart"
    return lambda: server.operator.post(path, headers={"Idempotency-Key": f"order-{number}"})


def _approve(server: Serving, number: int) -> Callable[[], None]:
    """Have a guest approve a restart, which then starts."""
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
    """Have the first set of a rack listen."""
    guests.poll_once(server.port, [fleets.address(rack * fleets.RACK)])


def _rollout(server: Serving, ear: Path) -> Counts:
    """Roll out over hosts whose guests do not listen: announced, started and done."""
    first = 20 * fleets.HOSTS
    hosts = [f"host-{number}" for number in range(first, first + ROLLED_OUT)]
    before = _settled(ear)
    wanted = {"hosts": hosts, "action": "freeze", "hosts_at_once": 20}
    rollout = server.operator.post("/v1/rollouts", wanted)["rollout"]["id"]
    server.operator.post("/v1/clock/advance", {"seconds": DAY})
    after = _settled(ear)
    state = server.operator.get(f"/v1/rollouts/{rollout}")["rollout"]["state"]
    if state != "done":
        raise Failed(f"the rollout is {state} after a day")
    return {kind: round((after[kind] - before[kind]) / ROLLED_OUT, 2) for kind in after}


def _settled(ear: Path) -> dict[str, int]:
    """Return the counts once they stay as they are."""
    deadline, last = time.monotonic() + MOST_SECONDS, _counts(ear)
    while time.monotonic() < deadline:
        time.sleep(SETTLED_AFTER)
        now = _counts(ear)
        if now == last:
            return now
        last = now
    raise Failed("the server does not settle")


def _counts(ear: Path) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(ear))
        told: dict[str, Any] = json.loads(caller.makefile().read())
        return told
