"""Polls per second of the server's processor time, compared with nginx and a constant answer.

Identity checks, the rate limit and activity tracking are on. The servers share one core, and the load
generator has another. The servers are measured alternately, so that other load on the computer affects both.
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
# Connections with one machine each: enough to keep a server busy all the time.
CONNECTIONS = 64
LEAST_RATIO = 0.95
LEAST_UNMODIFIED = 0.9
LOAD_SECONDS = 60.0

Rounds = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server and the request that it gets."""

    name: str
    pids: Sequence[int]
    port: int
    request: bytes
    sources: Sequence[str]


def measure(work: Workplace) -> Findings:
    """Measure full answers and 304s, of both servers alternately."""
    database = work.folder / "polls.db"
    fleets.make_store(database, fleets.racks(1), enabled=True)
    with serving(work.folder, database=database) as server:
        pin(server.pid, _cores()[0])
        document = _document(server)
        if nginx.program() is None:
            work.log("nginx is not installed, so there is no comparison")
            return _alone(work, server)
        with nginx.constant(work.folder, size=len(document)) as reference:
            for pid in reference.pids:
                pin(pid, _cores()[0])
            ours, theirs = _of_forewarn(server), _of_nginx(reference.pids, reference.same)
            whole = _by_turns(work, [ours, theirs], rounds=ROUNDS)
            ours = _of_forewarn(server, etag=guests.header(document, "ETag"))
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
        what="polls, requests per CPU second",
        measured=f"{_typical(rounds['forewarn']):,.0f}",
        value=_typical(rounds["forewarn"]),
        target=f"≥ {LEAST_RATIO} of nginx",
        note="nginx is not installed, so there is no comparison",
    )
    return Findings(rows=[row], raw={"whole": rounds, "connections": CONNECTIONS})


def _document(server: Serving) -> bytes:
    """Poll once as the first machine."""
    guest = guests.call(server.port, source=fleets.address(0))
    document = guests.ask(guest, guests.poll(server.port))
    guest.close()
    return document


def _of_forewarn(server: Serving, *, etag: str | None = None) -> Target:
    """Poll as the machines of a rack; with an ETag, as the machines of the first group."""
    headers = [] if etag is None else [f"If-None-Match: {etag}"]
    machines = fleets.RACK if etag is None else fleets.SET_SIZE
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
        work.log(f"round {number + 1} of {rounds}: {shown} requests per CPU second")
    return found


def _load(target: Target) -> dict[str, Any]:
    """Run the load generator in its own process, on the other core."""
    options = {
        "core": _cores()[-1],
        "port": target.port,
        "pids": target.pids,
        "request": target.request.decode(),
        "sources": target.sources,
        "warm_up": WARM_UP,
        "seconds": SECONDS,
    }
    ended = subprocess.run(
        (sys.executable, "-m", "bench.load", json.dumps(options)),
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
    # The ratio of each round, because other load in a round affects both servers.
    turns = zip(rounds["forewarn"], rounds["nginx"], strict=True)
    ratio = median(ours["per_cpu_second"] / theirs["per_cpu_second"] for ours, theirs in turns)
    return Row(
        what=f"{what}: forewarn / nginx, requests per CPU second",
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
    """Return the available cores. If there is only one, the server and the load generator share it."""
    return sorted(os.sched_getaffinity(0))
