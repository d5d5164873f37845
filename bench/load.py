"""The load: a process of its own that keeps one request outstanding on each of its connections.

It takes its orders as JSON in its argument and prints what it has found. It goes round its connections in
order, reading an answer and sending the next request: two system calls for each request and next to no
Python between them, so that one core of it keeps one core of either server busy.
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
    """Do what the argument asks for."""
    asked = json.loads(sys.argv[1])
    if asked["core"] is not None:
        os.sched_setaffinity(0, {asked["core"]})
    request = asked["request"].encode()
    callers = [guests.call(asked["port"], source=source) for source in asked["sources"]]
    print(
        json.dumps(
            measure(callers, request, pids=asked["pids"], warm_up=asked["warm_up"], seconds=asked["seconds"])
        )
    )
    guests.hang_up(callers)


def measure(
    callers: Sequence[socket.socket], request: bytes, *, pids: Sequence[int], warm_up: float, seconds: float
) -> dict[str, Any]:
    """Count the requests that are answered in a time, and what they cost the server."""
    sizes = {len(guests.ask(caller, request)) for caller in callers}
    if len(sizes) > 1:
        raise Failed(f"answers of different sizes: {sizes}")
    (size,) = sizes
    for caller in callers:
        caller.sendall(request)
    go_round(callers, request, size=size, seconds=warm_up)
    cpu, began = cpu_seconds(pids), time.perf_counter()
    requests = go_round(callers, request, size=size, seconds=seconds)
    cpu, wall = cpu_seconds(pids) - cpu, time.perf_counter() - began
    return {
        "requests": requests,
        "wall_seconds": round(wall, 4),
        "server_cpu_seconds": round(cpu, 4),
        "server_busy": round(cpu / wall, 3),
        "per_cpu_second": round(requests / cpu),
        "answer_bytes": size,
    }


def go_round(callers: Sequence[socket.socket], request: bytes, *, size: int, seconds: float) -> int:
    """Read answers and send requests until the time is over; returns how many were answered."""
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
    """Read on where an answer came in pieces; one of another size is no answer to this request."""
    more = len(receive(65536))
    if not more or received + more > size:
        raise Failed(f"expected answers of {size} bytes")
    return received + more


if __name__ == "__main__":
    main()
