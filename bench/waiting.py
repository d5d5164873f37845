"""Ten thousand waiting requests (`Prefer: wait`): the time from a change to the last answer."""

import select
import socket
import threading
import time
from statistics import median
from typing import Any

from bench import fleets, guests
from bench.processes import Failed, allow_many_files
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace

REQUESTS = 10_000
# The most waiting requests that the guest endpoint holds for one machine.
HELD = 8
# Open files of both processes, besides the connections.
OTHER_FILES = 200
ROUNDS = 3
LONGEST = 1.0
PATIENCE = 30.0


def measure(work: Workplace) -> Findings:
    """Let guests of a large group wait, and place an order for one of its machines."""
    files = allow_many_files()
    count = min(REQUESTS, (files - OTHER_FILES) // HELD * HELD)
    database = work.folder / "waiting.db"
    fleets.make_store(database, fleets.one_group(count // HELD), enabled=True)
    with serving(work.folder, database=database) as server:
        callers = _call(server, count)
        rounds = []
        for number in range(ROUNDS):
            rounds.append(_round(server, callers, machine=number))
            work.log(f"{count:,} answered {rounds[-1]['last_seconds']:.3f} s after the order was sent")
        guests.hang_up(callers)
    return Findings(
        rows=[_row(rounds, count)], raw={"requests": count, "open_files": files, "rounds": rounds}
    )


def _call(server: Serving, count: int) -> list[socket.socket]:
    return [guests.call(server.port, source=fleets.address(number // HELD)) for number in range(count)]


def _round(server: Serving, callers: list[socket.socket], *, machine: int) -> dict[str, Any]:
    """Let all requests wait, change the document, and read all answers."""
    witness = guests.call(server.port, source=fleets.address(0))
    etag = guests.header(guests.ask(witness, guests.poll(server.port)), "ETag")
    request = guests.poll(server.port, f"If-None-Match: {etag}", "Prefer: wait=120")
    for caller in callers:
        caller.sendall(request)
    # An answer to the witness means that the server has read earlier requests. Repeat it for late ones.
    for _ in range(3):
        time.sleep(0.3)
        guests.ask(witness, guests.poll(server.port))
    witness.close()
    poller = select.epoll()
    by_number = {caller.fileno(): caller for caller in callers}
    for number in by_number:
        poller.register(number, select.EPOLLIN)
    if poller.poll(0):
        raise Failed("a request was answered before anything had changed")
    ordering = threading.Thread(target=server.operator.order, args=(f"vm-{machine}", "freeze"))
    began = time.perf_counter()
    ordering.start()
    moments = _read_all(poller, by_number, began=began)
    ordering.join()
    poller.close()
    return {
        "first_seconds": round(moments[0], 4),
        "median_seconds": round(median(moments), 4),
        "last_seconds": round(moments[-1], 4),
    }


def _read_all(poller: select.epoll, waiting: dict[int, socket.socket], *, began: float) -> list[float]:
    """Read an answer on each connection; return the time of each."""
    moments: list[float] = []
    while waiting:
        ready = poller.poll(PATIENCE, len(waiting))
        if not ready:
            raise Failed(f"{len(waiting)} requests got no answer within {PATIENCE:.0f} s")
        for number, _ in ready:
            if not guests.answer(waiting.pop(number)).startswith(b"HTTP/1.1 200"):
                raise Failed("a waiting request was refused")
            poller.unregister(number)
            moments.append(time.perf_counter() - began)
    return moments


def _row(rounds: list[dict[str, Any]], count: int) -> Row:
    last = max(each["last_seconds"] for each in rounds)
    first = median(each["first_seconds"] for each in rounds)
    fewer = "" if count == REQUESTS else f"; only {count:,}, because of the limit of open files"
    return Row(
        what=f"{count:,} waiting requests, last answer after a change",
        measured=f"{last:.2f} s",
        value=last,
        target=f"< {LONGEST:.0f} s",
        met=last < LONGEST and count == REQUESTS,
        note=f"from sending the order, the worst of {ROUNDS} rounds; the first answer after {first:.3f} s; "
        f"{HELD} requests of each of {count // HELD:,} machines of one group{fewer}",
    )
