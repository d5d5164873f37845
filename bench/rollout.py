"""Plan a rollout over a thousand hosts, and run it on the manual clock."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import time as clock_time
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from bench.fleets import HOSTS, RACK, make_store, racks, toml
from bench.processes import Failed, cpu_seconds
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.versions import Version
from bench.workplace import Workplace
from forewarn.core.basic_types import DEFAULT_PROJECT
from forewarn.core.model.project import Calendar, Project, Window

RACKS = 200
AT_ONCE = 20
PLANNED_WITHIN, RUN_WITHIN = 2.0, 60.0  # seconds
DAY = 86_400
MOST_DAYS = 30
MOST_OF_BEFORE = 0.5
# A window each night. A wave that does not fit into a window waits for the next one.
NIGHTS = Calendar(
    windows=(Window(days=frozenset(range(7)), start=clock_time(22), length=timedelta(hours=6)),),
    zone=ZoneInfo("Europe/Berlin"),
)


def measure(work: Workplace) -> Findings:
    """Plan and run a rollout without windows, then plan one with windows."""
    spec = racks(RACKS)
    fleet = work.folder / "rollout.toml"
    fleet.write_text(toml(spec), encoding="utf-8")
    runs = {version.name: _plan_and_run(work, version, fleet) for version in work.versions}
    nights = replace(spec, projects=(Project(name=DEFAULT_PROJECT, calendar=NIGHTS),))
    make_store(work.folder / "nights.db", nights, enabled=False)
    with serving(work.folder, "--clock", "manual", database=work.folder / "nights.db") as server:
        bound, _ = _plan(server)
    return Findings(rows=_rows(runs, bound), raw={"planned_with_windows": bound, **runs})


def _plan_and_run(work: Workplace, version: Version, fleet: Path) -> dict[str, float]:
    database = work.folder / f"{version.name}.db"
    options = ("--clock", "manual", "--fleet", str(fleet))
    with serving(work.folder, *options, database=database, program=version.forewarn) as server:
        planned, waves = _plan(server)
        before = cpu_seconds([server.pid])
        run = _run(server)
        cpu = cpu_seconds([server.pid]) - before
    work.log(
        f"{version.name}: {waves} waves, planned in {planned:.2f} s, run in {run:.1f} s ({cpu:.1f} s of CPU)"
    )
    return {"planned": planned, "waves": waves, "run": run, "cpu": cpu}


def _rows(runs: Mapping[str, Mapping[str, float]], bound: float) -> list[Row]:
    size = f"{RACKS * HOSTS:,} hosts and {RACKS * RACK:,} machines"
    now, before = runs["now"], runs.get("before")
    return [
        Row(
            what=f"plan a rollout over {size}",
            measured=f"{now['planned']:.2f} s",
            value=round(now["planned"], 3),
            target=f"< {PLANNED_WITHIN:.0f} s",
            met=now["planned"] < PLANNED_WITHIN,
            note=f"{now['waves']:.0f} waves of up to {AT_ONCE} hosts; {bound:.2f} s with a window each night",
        ),
        Row(
            what="run the rollout on the manual clock",
            measured=f"{now['run']:.1f} s",
            value=round(now["run"], 2),
            target=f"< {RUN_WITHIN:.0f} s",
            met=now["run"] < RUN_WITHIN,
            note=f"{now['cpu']:.1f} s of CPU; each API call advances the clock by a day",
        ),
        *([] if before is None else [_comparison(now, before)]),
    ]


def _comparison(now: Mapping[str, float], before: Mapping[str, float]) -> Row:
    ratio = now["cpu"] / before["cpu"]
    return Row(
        what="CPU of the rollout, now / before",
        measured=f"{ratio:.2f}",
        value=round(ratio, 3),
        target=f"≤ {MOST_OF_BEFORE}",
        met=ratio <= MOST_OF_BEFORE,
        note=f"{now['cpu']:.1f} to {before['cpu']:.1f} s",
    )


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
