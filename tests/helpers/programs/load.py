"""Operators, guests and a clock load a server until it is killed.

The ledger lists what it promised by then.
"""

import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.helpers.programs.process import PATIENCE, Guest, Program, operator_client

GUESTS = {
    "web": [f"127.0.1.{number}" for number in range(10, 16)],
    "shop": [f"127.0.1.{number}" for number in range(20, 24)],
    "batch": [f"127.0.1.{number}" for number in range(30, 33)],
    "db": ["127.0.1.40"],
}
ORDERS = [
    *((f"web-{number}", action) for number in range(6) for action in ("restart", "redeploy", "freeze")),
    *((name, "restart") for name in ("FrontEnd_IN_0", "Worker_IN_1", "db")),
    *((f"batch_{number}", action) for number in range(3) for action in ("evict", "start")),
]


class GuestLedger:
    """Everything that the service answered with 200 or 202, and therefore must keep."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self.answers = 0
        self.orders: set[str] = set()
        self.cancelled: set[str] = set()
        self.approved: set[str] = set()
        self.held: set[str] = set()
        self.released: set[str] = set()
        self.tags: dict[str, str] = {}
        # Requests without an answer, which may have taken effect.
        self.releasing: set[str] = set()
        self.tagging: dict[str, str] = {}
        self.records: dict[int, dict[str, Any]] = {}
        self.done: dict[tuple[str, str], dict[str, Any]] = {}
        self.documents: dict[tuple[str, int], tuple[bytes, str]] = {}
        self.incarnations: Counter[str] = Counter()
        self.now = ""
        self.faults: list[str] = []

    def take(self, answer: httpx.Response, keep: Callable[[Any], None]) -> None:
        """Record an answer that is a promise. A refusal is none, and must be an expected one."""
        with self._lock:
            if answer.status_code in (200, 201, 202):
                keep(answer.json() if answer.content else None)
                self.answers += 1
                self._more.notify_all()
            elif answer.status_code not in (404, 409, 429):
                self.faults.append(f"{answer.request.url}: {answer.status_code} {answer.text}")

    def grow(self, by: int) -> None:
        """Wait for this many more answers."""
        with self._lock:
            target = self.answers + by
            assert self._more.wait_for(lambda: self.answers >= target or self.faults, timeout=PATIENCE)

    def saw_document(self, group: str, answer: httpx.Response) -> None:
        document = answer.json()
        incarnation = document["DocumentIncarnation"]
        self.incarnations[group] = max(self.incarnations[group], incarnation)
        seen = (answer.content, answer.headers["etag"])
        known = self.documents.setdefault((group, incarnation), seen)
        if known != seen:
            self.faults.append(f"{group} has two documents {incarnation}: {known} and {seen}")

    def saw_orders(self, orders: list[dict[str, Any]]) -> None:
        for order in orders:
            for step in order["steps"]:
                if step["state"] == "done":
                    self.done[order["id"], step["machine"]] = step

    def saw_records(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            known = self.records.setdefault(record["number"], record)
            if known != record:
                self.faults.append(f"two records have one number: {known} and {record}")

    def was_released(self, hold: str) -> None:
        self.held.discard(hold)
        self.released.add(hold)

    def saw_time(self, now: str) -> None:
        self.now = max(self.now, now, key=moment)


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


class Load:
    """Operators, guests and a clock that load one server until it is gone."""

    def __init__(self, program: Program, ledger: GuestLedger, dice: random.Random) -> None:
        self._program = program
        self._ledger = ledger
        self._seeds = [dice.randrange(2**32) for _ in range(6)]

    def run_until_killed(self, *, answers: int) -> None:
        jobs = (
            self._order,
            self._decide,
            self._change_fleet,
            self._play_guests,
            self._turn_clock,
            self._read,
        )
        with ThreadPoolExecutor(len(jobs)) as pool:
            running = [
                pool.submit(self._repeat, job, seed) for job, seed in zip(jobs, self._seeds, strict=True)
            ]
            try:
                self._ledger.grow(answers)
            finally:
                self._program.process.kill()
            for each in running:
                each.result(PATIENCE)

    def _repeat(self, job: Callable[[httpx.Client, random.Random], None], seed: int) -> None:
        dice = random.Random(seed)
        try:
            with operator_client(self._program.operators) as api:
                while not self._ledger.faults:
                    job(api, dice)
        except httpx.TransportError:
            return  # the server is gone

    def _order(self, api: httpx.Client, dice: random.Random) -> None:
        if dice.random() < 0.8:
            name, action = dice.choice(ORDERS)
            answer = api.post(f"/v1/machines/{name}/{action}")
        else:
            work = dice.choice(["freeze", "reboot", "redeploy"])
            path = f"/v1/hosts/host-{dice.randint(1, 3)}/maintenance"
            answer = api.post(path, json={"action": work})
        self._ledger.take(answer, lambda said: self._ledger.orders.add(said["order"]["id"]))

    def _decide(self, api: httpx.Client, dice: random.Random) -> None:
        events = api.get("/v1/events").json()["events"]
        if not events:
            return
        event = dice.choice(events)
        if dice.random() < 0.5:
            answer = api.post(f"/v1/events/{event['id']}/approve")
            self._ledger.take(answer, lambda said: self._ledger.approved.add(said["event"]["id"]))
        else:
            answer = api.post(f"/v1/events/{event['id']}/cancel")
            self._ledger.take(answer, lambda said: self._ledger.cancelled.add(said["event"]["order"]))

    def _change_fleet(self, api: httpx.Client, dice: random.Random) -> None:
        """Set and release holds, and tag machines.

        No other job does this, so this one knows the last values.
        """
        ledger, chance = self._ledger, dice.random()
        if chance < 0.5:
            name, turn = f"web-{dice.randrange(6)}", f"{dice.randrange(2**32)}"
            ledger.tagging[name] = turn
            answer = api.put(f"/v1/machines/{name}", json={"tags": {"turn": turn}})
            ledger.take(answer, lambda _: ledger.tags.update({name: turn}))
        elif chance < 0.7:
            answer = api.post("/v1/holds", json={"host": f"host-{dice.randint(1, 3)}", "reason": "a look"})
            ledger.take(answer, lambda said: ledger.held.add(said["hold"]["id"]))
        elif ledger.held:
            hold = dice.choice(sorted(ledger.held))
            ledger.releasing.add(hold)
            answer = api.post(f"/v1/holds/{hold}/release")
            ledger.take(answer, lambda _: ledger.was_released(hold))

    def _play_guests(self, _: httpx.Client, dice: random.Random) -> None:
        group = dice.choice(list(GUESTS))
        guest = Guest(self._program.guests[0], address=dice.choice(GUESTS[group]))
        with guest.client:
            seen = guest.poll()
            self._ledger.take(seen, lambda _: self._ledger.saw_document(group, seen))
            listed = [event["EventId"] for event in seen.json()["Events"]]
            if listed and dice.random() < 0.5:
                chosen = dice.choice(listed)
                self._ledger.take(guest.approve(chosen), lambda _: self._ledger.approved.add(chosen))

    def _turn_clock(self, api: httpx.Client, dice: random.Random) -> None:
        if dice.random() < 0.5:
            answer = api.post("/v1/clock/advance", json={"seconds": dice.choice([0.5, 5, 90, 900])})
        else:
            answer = api.get("/v1/clock")
        self._ledger.take(answer, lambda said: self._ledger.saw_time(said["now"]))

    def _read(self, api: httpx.Client, _: random.Random) -> None:
        records, orders = api.get("/v1/history"), api.get("/v1/orders")
        self._ledger.take(records, lambda said: self._ledger.saw_records(said["records"]))
        self._ledger.take(orders, lambda said: self._ledger.saw_orders(said["orders"]))


def check(program: Program, ledger: GuestLedger) -> None:
    """Compare the state of the server with its answers."""
    assert ledger.faults == []
    assert moment(program.get("/v1/clock")["now"]) >= moment(ledger.now)
    check_orders(program, ledger)
    check_fleet(program, ledger)
    check_history(program, ledger)
    for group, addresses in GUESTS.items():
        answer = program.guest(addresses[0]).poll()
        assert answer.json()["DocumentIncarnation"] >= ledger.incarnations[group]
        ledger.take(answer, lambda _, group=group, answer=answer: ledger.saw_document(group, answer))
    assert ledger.faults == []


def check_orders(program: Program, ledger: GuestLedger) -> None:
    orders = {order["id"]: order for order in program.all("orders")}
    assert ledger.orders <= orders.keys()
    assert {orders[id_]["state"] for id_ in ledger.cancelled} <= {"cancelled"}
    for (id_, machine), step in ledger.done.items():
        assert step in orders[id_]["steps"], f"the step of {machine} in order {id_} is no longer as it was"
    for id_ in ledger.approved:
        event = program.get(f"/v1/events/{id_}")["event"]
        assert event["approved"] or event["started_at"] or event["ended_at"], f"{id_} lost its approval"


def check_fleet(program: Program, ledger: GuestLedger) -> None:
    """Compare holds and tags. An unanswered request may have taken effect or not."""
    holds = {hold["id"] for hold in program.get("/v1/holds")["holds"]}
    assert ledger.held - ledger.releasing <= holds
    assert holds.isdisjoint(ledger.released)
    ledger.held &= holds
    for name, turn in ledger.tags.items():
        machine = program.get(f"/v1/machines/{name}")["machine"]
        found = machine["tags"]["turn"]
        assert found in (turn, ledger.tagging[name])
        # An unanswered request took effect or not: this is the known value from now on. Otherwise a second
        # unanswered request, before the next kill, would hide the first one.
        ledger.tags[name] = found


def check_history(program: Program, ledger: GuestLedger) -> None:
    records = program.history()
    ledger.saw_records(records)
    assert ledger.records.keys() == {record["number"] for record in records}
    times = [moment(record["at"]) for record in records]
    assert times == sorted(times)
    steps = Counter(
        (record["kind"], record["order"], record["machine"])
        for record in records
        if record["kind"] in ("step-begun", "step-done")
    )
    assert {step: times for step, times in steps.items() if times > 1} == {}


def kill_at_start(program: Program, dice: random.Random) -> None:
    program.spawn()
    with pytest.raises(subprocess.TimeoutExpired):
        program.process.wait(dice.uniform(0.0, 0.4))
    program.kill()


def finish(program: Program, ledger: GuestLedger) -> None:
    """Advance until every order is over. None may have failed, and no event may remain."""
    for hold in program.get("/v1/holds")["holds"]:
        ledger.releasing.add(hold["id"])
        program.post(f"/v1/holds/{hold['id']}/release")
    for _ in range(30):
        program.advance(3600)
    assert {order["state"] for order in program.all("orders")} <= {"done", "cancelled"}
    assert program.all("events") == []
    assert program.stop() == 0
    assert "Traceback" not in program.err.text
    program.start()
