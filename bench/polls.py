"""Polls: how many are answered for a second of the server's processor, beside nginx answering a constant.

Identity, rate limit and activity are on, as always. Each server has a core, the load has another, and they
take turns, so that whatever else the computer does meets both.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import fleets, guests, nginx
from bench.processes import Failed, pin
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace

ROUNDS = 9
ROUNDS_UNMODIFIED = 5
WARM_UP = 0.4
SECONDS = 1.2
# A machine polls on one connection; so many of them keep a server from ever being idle.
CONNECTIONS = 64
LEAST_RATIO = 0.95
LEAST_UNMODIFIED = 0.9
LOAD_SECONDS = 60.0

Rounds = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server and what it is asked."""

    name: str
    pids: Sequence[int]
    port: int
    request: bytes
    sources: Sequence[str]


def measure(work: Workplace) -> Findings:
    """Measure whole answers and 304s, of both servers by turns."""
    database = work.folder / "polls.db"
    fleets.make_store(database, fleets.racks(1), enabled=True)
    with serving(work.folder, database=database) as server:
        pin(server.pid, _cores()[0])
        document = _document(server)
        if nginx.program() is None:
            work.say("nginx is not installed: there is nothing to compare with")
            return _alone(work, server)
        with nginx.constant(work.folder, size=len(document)) as reference:
            for pid in reference.pids:
                pin(pid, _cores()[0])
            ours, theirs = _of_forewarn(server), _of_nginx(reference.pids, reference.same)
            whole = _by_turns(work, [ours, theirs], rounds=ROUNDS)
            ours = _of_forewarn(server, having=guests.header(document, "ETag"))
            theirs = _of_nginx(reference.pids, reference.unmodified)
            unmodified = _by_turns(work, [ours, theirs], rounds=ROUNDS_UNMODIFIED)
    return Findings(
        rows=[
            _compared("polls", whole, least=LEAST_RATIO),
            _compared("polls answered 304", unmodified, least=LEAST_UNMODIFIED),
        ],
        raw={"whole": whole, "unmodified": unmodified, "connections": CONNECTIONS},
    )


def _alone(work: Workplace, server: Serving) -> Findings:
    rounds = _by_turns(work, [_of_forewarn(server)], rounds=ROUNDS)
    row = Row(
        what="polls, requests for a second of CPU",
        measured=f"{_typical(rounds['forewarn']):,.0f}",
        value=_typical(rounds["forewarn"]),
        target=f"≥ {LEAST_RATIO} of nginx",
        note="nginx is not installed, so there is nothing to compare with",
    )
    return Findings(rows=[row], raw={"whole": rounds, "connections": CONNECTIONS})


def _document(server: Serving) -> bytes:
    """Poll once as the first machine."""
    guest = guests.call(server.port, source=fleets.address(0))
    document = guests.ask(guest, guests.poll(server.port))
    guest.close()
    return document


def _of_forewarn(server: Serving, *, having: str | None = None) -> Target:
    """Poll as many machines; or, with a group's document in hand, as the machines of that group."""
    headers = [] if having is None else [f"If-None-Match: {having}"]
    machines = fleets.RACK if having is None else fleets.SET_SIZE
    return Target(
        name="forewarn",
        pids=[server.pid],
        port=server.port,
        request=guests.poll(server.port, *headers),
        sources=[fleets.address(number % machines) for number in range(CONNECTIONS)],
    )


def _of_nginx(pids: Sequence[int], port: int) -> Target:
    sources = [fleets.address(number) for number in range(CONNECTIONS)]
    return Target(name="nginx", pids=pids, port=port, request=guests.poll(port), sources=sources)


def _by_turns(work: Workplace, targets: Sequence[Target], *, rounds: int) -> dict[str, Rounds]:
    found: dict[str, Rounds] = {target.name: [] for target in targets}
    for number in range(rounds):
        for target in targets:
            found[target.name].append(_load(target))
        shown = ", ".join(f"{name} {each[-1]['per_cpu_second']:,}" for name, each in found.items())
        work.say(f"round {number + 1} of {rounds}: {shown} requests for a second of CPU")
    return found


def _load(target: Target) -> dict[str, Any]:
    """Run the load in its own process, on the other core."""
    asked = {
        "core": _cores()[-1],
        "port": target.port,
        "pids": target.pids,
        "request": target.request.decode(),
        "sources": target.sources,
        "warm_up": WARM_UP,
        "seconds": SECONDS,
    }
    ended = subprocess.run(
        (sys.executable, "-m", "bench.load", json.dumps(asked)),
        capture_output=True,
        check=False,
        timeout=LOAD_SECONDS,
        cwd=Path(__file__).parent.parent,
    )
    if ended.returncode != 0:
        raise Failed(f"the load failed: {ended.stderr.decode()[-500:]}")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _compared(what: str, rounds: Mapping[str, Rounds], *, least: float) -> Row:
    # Of each round by itself: what disturbs one round disturbs both servers in it.
    turns = zip(rounds["forewarn"], rounds["nginx"], strict=True)
    ratio = median(ours["per_cpu_second"] / theirs["per_cpu_second"] for ours, theirs in turns)
    return Row(
        what=f"{what}: forewarn to nginx, requests for a second of CPU",
        measured=f"{ratio:.2f}",
        value=round(ratio, 3),
        target=f"≥ {least}",
        met=ratio >= least,
        note="; ".join(_described(name, found) for name, found in rounds.items()),
    )


def _described(name: str, rounds: Rounds) -> str:
    busy = median(each["server_busy"] for each in rounds)
    return (
        f"{name} {_typical(rounds):,.0f} (median of {len(rounds)} rounds), "
        f"answers of {rounds[0]['answer_bytes']} bytes, {busy:.0%} of its core"
    )


def _typical(rounds: Rounds) -> float:
    return float(median(each["per_cpu_second"] for each in rounds))


def _cores() -> list[int]:
    """Name the cores there are; with a single one server and load must share it."""
    return sorted(os.sched_getaffinity(0))
