"""A rollout over a thousand hosts: planned, and run to its end on the manual clock."""

import time
from dataclasses import replace
from datetime import time as clock_time
from datetime import timedelta
from zoneinfo import ZoneInfo

from bench.fleets import HOSTS, RACK, make_store, racks
from bench.processes import Failed
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace
from forewarn.core.model.project import Project
from forewarn.core.model.windows import Calendar, Window
from forewarn.core.words import DEFAULT_PROJECT

RACKS = 200
AT_ONCE = 20
PLANNED_WITHIN, RUN_WITHIN = 2.0, 60.0  # seconds
DAY = 86_400
MOST_DAYS = 30
# A window each night: waves that do not fit into one wait for the next.
NIGHTS = Calendar(
    windows=(Window(days=frozenset(range(7)), start=clock_time(22), length=timedelta(hours=6)),),
    zone=ZoneInfo("Europe/Berlin"),
)


def measure(work: Workplace) -> Findings:
    """Plan and run with nothing in the way; then plan with windows."""
    spec = racks(RACKS)
    make_store(work.folder / "open.db", spec, enabled=False)
    with serving(work.folder, "--clock", "manual", database=work.folder / "open.db") as server:
        planned, waves = _plan(server)
        work.say(f"{waves} waves planned in {planned:.2f} s")
        run = _run(server)
        work.say(f"run in {run:.1f} s")
    nights = replace(spec, projects=(Project(name=DEFAULT_PROJECT, calendar=NIGHTS),))
    make_store(work.folder / "nights.db", nights, enabled=False)
    with serving(work.folder, "--clock", "manual", database=work.folder / "nights.db") as server:
        bound, _ = _plan(server)
    size = f"{RACKS * HOSTS:,} hosts and {RACKS * RACK:,} machines"
    rows = [
        Row(
            what=f"plan a rollout over {size}",
            measured=f"{planned:.2f} s",
            value=round(planned, 3),
            target=f"< {PLANNED_WITHIN:.0f} s",
            met=planned < PLANNED_WITHIN,
            note=f"{waves} waves of up to {AT_ONCE} hosts; {bound:.2f} s with a window each night",
        ),
        Row(
            what="run it to its end on the manual clock",
            measured=f"{run:.1f} s",
            value=round(run, 2),
            target=f"< {RUN_WITHIN:.0f} s",
            met=run < RUN_WITHIN,
            note="through the API, a day in each call, until it is done",
        ),
    ]
    return Findings(rows=rows, raw={"planned": planned, "planned_with_windows": bound, "run": run})


def _plan(server: Serving) -> tuple[float, int]:
    began = time.perf_counter()
    answer = server.operator.post("/v1/rollouts", {**_wanted(), "dry_run": True})
    return time.perf_counter() - began, len(answer["rollout"]["waves"])


def _run(server: Serving) -> float:
    began = time.perf_counter()
    id_ = server.operator.post("/v1/rollouts", _wanted())["rollout"]["id"]
    for _ in range(MOST_DAYS):
        server.operator.post("/v1/clock/advance", {"seconds": DAY})
        if server.operator.get(f"/v1/rollouts/{id_}")["rollout"]["state"] == "done":
            return time.perf_counter() - began
    raise Failed(f"the rollout was not done after {MOST_DAYS} days")


def _wanted() -> dict[str, object]:
    return {"hosts": "all", "action": "freeze", "hosts_at_once": AT_ONCE}
