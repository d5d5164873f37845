"""A simulated day of the sample fleet on the manual clock."""

import time
from pathlib import Path
from statistics import median
from typing import Any

from bench import guests
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace

FLEET = Path(__file__).parent.parent / "examples" / "fleet.toml"
DAY = 86_400
ROUNDS = 5
LONGEST = 1000.0  # milliseconds
ON_MACHINES = {"web-0": "restart", "web-3": "redeploy", "db": "freeze"}
ON_HOSTS = ("host-1", "host-2")


def measure(work: Workplace) -> Findings:
    """Place some orders, then advance the clock by a day in one call; repeat for several days."""
    with serving(
        work.folder, "--fleet", str(FLEET), "--clock", "manual", database=work.folder / "day.db"
    ) as server:
        rounds = [_day(server) for _ in range(ROUNDS)]
    typical = median(each["milliseconds"] for each in rounds)
    work.log(f"a day took {typical:.0f} ms")
    row = Row(
        what="24 hours of the sample fleet on the manual clock",
        measured=f"{typical:.0f} ms",
        value=round(typical, 1),
        target=f"< {LONGEST:.0f} ms",
        met=typical < LONGEST,
        note=f"one API call, in which {len(ON_MACHINES) + len(ON_HOSTS)} orders are carried out; "
        f"{rounds[-1]['records']} records",
    )
    return Findings(rows=[row], raw={"rounds": rounds})


def _day(server: Serving) -> dict[str, Any]:
    """Enable all groups, place orders, and advance the clock."""
    operator = server.operator
    for machine in operator.get("/v1/machines?limit=1000")["machines"]:
        guest = guests.call(machine["port"])
        guests.ask(guest, guests.poll(machine["port"]))
        guest.close()
    before = _newest(server)
    for name, action in ON_MACHINES.items():
        operator.order(name, action)
    for host in ON_HOSTS:
        operator.post(f"/v1/hosts/{host}/maintenance", {"action": "freeze"})
    began = time.perf_counter()
    operator.post("/v1/clock/advance", {"seconds": DAY})
    return {
        "milliseconds": round((time.perf_counter() - began) * 1000, 2),
        "records": _newest(server) - before,
    }


def _newest(server: Serving) -> int:
    """Return the number of the newest record."""
    number: int = server.operator.get("/v1/history?limit=1")["records"][0]["number"]
    return number
