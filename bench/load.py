"""The load generator: a process that keeps one request outstanding on each of its connections.

Its argument has the options as JSON, and it prints its results as JSON. For each connection in turn, it reads
an answer and sends the next request. These are two system calls with very little Python between them, so one
core of the generator keeps one core of either server busy.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from bench import guests
from bench.processes import Failed, cpu_seconds


def main() -> None:
    """Generate the load that the argument describes."""
    options = json.loads(sys.argv[1])
    if options["core"] is not None:
        os.sched_setaffinity(0, {options["core"]})
    request = options["request"].encode()
    callers = [guests.call(options["port"], source=source) for source in options["sources"]]
    print(
        json.dumps(
            measure(
                callers, request, pids=options["pids"], warm_up=options["warm_up"], seconds=options["seconds"]
            )
        )
    )
    guests.hang_up(callers)


def measure(
    callers: Sequence[socket.socket], request: bytes, *, pids: Sequence[int], warm_up: float, seconds: float
) -> dict[str, Any]:
    """Count the requests that the server answers in a time, and measure its processor time."""
    sizes = {len(guests.ask(caller, request)) for caller in callers}
    if len(sizes) > 1:
        raise Failed(f"answers of different sizes: {sizes}")
    (size,) = sizes
    for caller in callers:
        caller.sendall(request)
    exchange(callers, request, size=size, seconds=warm_up)
    cpu, began = cpu_seconds(pids), time.perf_counter()
    requests = exchange(callers, request, size=size, seconds=seconds)
    cpu, wall = cpu_seconds(pids) - cpu, time.perf_counter() - began
    return {
        "requests": requests,
        "wall_seconds": round(wall, 4),
        "server_cpu_seconds": round(cpu, 4),
        "server_busy": round(cpu / wall, 3),
        "per_cpu_second": round(requests / cpu),
        "answer_bytes": size,
    }


def exchange(callers: Sequence[socket.socket], request: bytes, *, size: int, seconds: float) -> int:
    """Read answers and send requests until the time is over; return the number of answers."""
    pairs = [(caller.recv, caller.send) for caller in callers]
    rounds = 0
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        for receive, send in pairs:
            received = len(receive(65536))
            while received != size:
                received = _rest(receive, received, size)
            send(request)
        rounds += 1
    return rounds * len(pairs)


def _rest(receive: Any, received: int, size: int) -> int:
    """Read the next piece of an answer; return the size so far. Failed if the answer is too long."""
    more = len(receive(65536))
    if not more or received + more > size:
        raise Failed(f"expected answers of {size} bytes")
    return received + more


if __name__ == "__main__":
    main()
