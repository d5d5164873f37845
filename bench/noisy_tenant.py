"""The latency of one project's approvals while another project causes heavy load."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench import fleets, guests
from bench.processes import Failed, running
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace

NOISY = 1_000  # machines of the noisy project
QUIET = 300  # approvals for each figure
EVERY = 0.03  # seconds between two approvals
CALLERS, TOKENS, GUESTS = 12, 4, 12
MOST_RATIO = 3.0
# Names of the maximum length with the same middle part. They make the search for similar names slowest.
MIDDLE = "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-abc"
HEADERS = {"Content-Type": "application/json"}
NO_EVENT = '{"StartRequests":[{"EventId":"602D9444-D2CD-49C7-8624-8643E7171297"}]}'


def _name(number: int) -> str:
    return f"{'xyz'[number % 3]}{MIDDLE}{'abcdefghij'[number % 10]}{'klmnopqrst'[number // 10 % 10]}xy"[:62]


def _names() -> list[str]:
    return [f"{_name(number)[:57]}{number:04}z" for number in range(NOISY)]


# A group of the noisy project. Its guests approve all events at once, and its callers place new orders.
MANY, MANY_AT_ONCE = 100, "approvals of a hundred events at once"
# The repeated calls of the noisy project, by the name of the row.
WORST: Mapping[str, Sequence[str]] = {
    "misspelt names": [f"POST /v1/machines/q{MIDDLE}qqq/restart"],
    "orders": [f"POST /v1/machines/{name}/redeploy" for name in _names()],
    "lists and histories": [
        "GET /v1/machines?limit=1000",
        "GET /v1/history?limit=1000",
        "GET /v1/orders?limit=1000",
        "GET /v1/summary",
        "GET /v1/history?search=zzz&limit=1000",
    ],
    "approvals of no event": [],  # only guests cause this load
    MANY_AT_ONCE: [f"POST /v1/machines/many-{number}/freeze" for number in range(MANY)],
}


def measure(work: Workplace) -> Findings:
    """Measure approvals of one project on an idle server, and beside each kind of load."""
    fleet = work.folder / "tenants.toml"
    fleet.write_text(_toml(), encoding="utf-8")
    settings = {"FOREWARN_TIMES_USER_ORDERS": "1000000"}
    with serving(
        work.folder, *("--fleet", str(fleet)), database=work.folder / "tenants.db", settings=settings
    ) as server:
        tokens = _tokens(server)
        places = iter(range(QUIET * (len(WORST) + 1)))
        _announce(server, tokens["quiet"])
        idle = _approvals(server, places)
        noisy = {}
        for kind in WORST:
            with _noise(work, server, kind, tokens):
                noisy[kind] = _approvals(server, places)
            work.log(f"{kind}: p99 {_p99(noisy[kind]) * 1000:.1f} to {_p99(idle) * 1000:.1f} ms")
            time.sleep(2.0)  # until the orders of the load are done
    rows = [_row(kind, idle, taken) for kind, taken in noisy.items()]
    return Findings(rows=rows, raw={"idle": idle, **noisy})


def _row(kind: str, idle: Sequence[float], taken: Sequence[float]) -> Row:
    ratio = _p99(taken) / _p99(idle)
    return Row(
        what=f"approval p99, another tenant's {kind} / idle",
        measured=f"{ratio:.1f}",
        value=round(ratio, 2),
        target=f"≤ {MOST_RATIO:g}",
        met=ratio <= MOST_RATIO,
        note=f"{_p99(taken) * 1000:.1f} to {_p99(idle) * 1000:.1f} ms; "
        f"medians {median(taken) * 1000:.1f} and {median(idle) * 1000:.1f} ms",
    )


def _p99(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=100)[98]


def _toml() -> str:
    parts = ["[defaults]", 'driver = "simulated"', "[projects.quiet]", "[projects.noisy]", "[hosts.h]"]
    parts += ["[groups.many]", 'kind = "availability-set"', "update-domains = 1", 'project = "noisy"']
    mine = [(f"quiet-{number}", "quiet") for number in range(QUIET * (len(WORST) + 1))]
    for number, (name, project) in enumerate([*mine, *((name, "noisy") for name in _names())]):
        parts += ["[[machines]]", f'name = "{name}"', f'project = "{project}"', 'host = "h"']
        parts += [f'address = "{fleets.address(number)}"']
    for number in range(MANY):
        parts += ["[[machines]]", f'name = "many-{number}"', 'group = "many"', 'host = "h"']
        parts += [f'address = "{fleets.address(_first_of_many() + number)}"']
    return "\n".join([*parts, ""])


def _first_of_many() -> int:
    return QUIET * (len(WORST) + 1) + NOISY


def _tokens(server: Serving) -> dict[str, list[str]]:
    """Create the tokens. The first is the operator's."""
    made: dict[str, list[str]] = {"operator": [], "quiet": [], "noisy": []}
    wanted = [("operator", "operator", None), ("quiet", "user", "quiet")]
    wanted += [(f"noisy-{number}", "user", "noisy") for number in range(TOKENS)]
    for name, role, project in wanted:
        headers = {"Authorization": f"Bearer {made['operator'][0]}"} if made["operator"] else {}
        body = {"name": name, "role": role, **({"project": project} if project else {})}
        answer = server.operator.post("/v1/tokens", body, headers=headers)
        made[project or "operator"].append(answer["secret"])
    return made


def _announce(server: Serving, tokens: Sequence[str]) -> None:
    """Enable notice for every machine of the quiet project, and announce a restart of each."""
    count = QUIET * (len(WORST) + 1)
    guests.poll_once(server.port, [fleets.address(number) for number in range(count)])
    for number in range(count):
        server.operator.post(
            f"/v1/machines/quiet-{number}/restart", {}, headers={"Authorization": f"Bearer {tokens[0]}"}
        )
        time.sleep(0.011)  # the rate limit of one caller


def _approvals(server: Serving, places: Iterator[int]) -> list[float]:
    """Approve for one machine after the other; return the time of each approval."""
    taken = []
    for _, number in zip(range(QUIET), places, strict=False):
        with closing(guests.call(server.port, source=fleets.address(number))) as caller:
            document = guests.ask(caller, guests.poll(server.port))
            event = json.loads(document.partition(guests.END_OF_HEAD)[2])["Events"][0]["EventId"]
            request = guests.approval(server.port, json.dumps({"StartRequests": [{"EventId": event}]}))
            began = time.perf_counter()
            answer = guests.ask(caller, request)
            taken.append(time.perf_counter() - began)
            if not answer.startswith(b"HTTP/1.1 200"):
                raise Failed(f"an approval was refused: {answer[:200]!r}")
        time.sleep(EVERY)
    return taken


@contextmanager
def _noise(
    work: Workplace, server: Serving, kind: str, tokens: Mapping[str, Sequence[str]]
) -> Iterator[None]:
    """Cause the load of the noisy project in another process while the block lasts."""
    options = {"kind": kind, "port": server.operator.port, "guests": server.port, "tokens": tokens["noisy"]}
    command = (sys.executable, "-m", "bench.noisy_tenant", json.dumps(options))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with running(command, folder=work.folder, log="noise.log", environment=environment) as process:
        time.sleep(1.0)
        yield
        if process.poll() is not None:
            raise Failed(
                f"the load generator ended: {(work.folder / 'noise.log').read_text(encoding='utf-8')[-500:]}"
            )


def main() -> None:
    """Cause load until the process is stopped.

    The process has a low priority, because a real tenant's programs run on other computers.
    """
    os.nice(10)
    options = json.loads(sys.argv[1])
    calls = WORST[options["kind"]]
    work = [
        threading.Thread(target=_call, args=(options, calls, number), daemon=True)
        for number in range(CALLERS if calls else 0)
    ]
    if not calls:
        first = QUIET * (len(WORST) + 1)
        work = [
            threading.Thread(target=_approve, args=(options, fleets.address(first + number)), daemon=True)
            for number in range(GUESTS)
        ]
    if options["kind"] == MANY_AT_ONCE:
        work.append(threading.Thread(target=_approve_all, args=(options, fleets.address(_first_of_many()))))
    for each in work:
        each.start()
    for each in work:
        each.join()


def _call(options: Mapping[str, Any], calls: Sequence[str], number: int) -> None:
    tokens = options["tokens"]
    headers = {**HEADERS, "Authorization": f"Bearer {tokens[number % len(tokens)]}"}
    connection = HTTPConnection("127.0.0.1", options["port"], timeout=60)
    turn = number
    while True:
        method, path = calls[turn % len(calls)].split()
        turn += CALLERS
        connection.request(method, path, "{}" if method == "POST" else None, headers)
        connection.getresponse().read()


def _approve(options: Mapping[str, Any], source: str) -> None:
    request = guests.approval(options["guests"], NO_EVENT)
    with closing(guests.call(options["guests"], source=source)) as caller:
        while True:
            guests.ask(caller, request)


def _approve_all(options: Mapping[str, Any], source: str) -> None:
    with closing(guests.call(options["guests"], source=source)) as caller:
        while True:
            document = guests.ask(caller, guests.poll(options["guests"]))
            events = json.loads(document.partition(guests.END_OF_HEAD)[2])["Events"]
            ids = [each["EventId"] for each in events if each["EventStatus"] == "Scheduled"]
            body = json.dumps({"StartRequests": [{"EventId": id_} for id_ in ids]})
            if len(ids) >= MANY // 2:
                guests.ask(caller, guests.approval(options["guests"], body))
            else:
                time.sleep(0.05)


if __name__ == "__main__":
    main()
