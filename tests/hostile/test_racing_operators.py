"""Races between operators: a repeated call is done once, and all answers agree."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from tests.helpers.programs.process import PATIENCE, Program, operator_client, sample_fleet
from tests.helpers.service.counts import tries

RACERS = 16
ROUNDS = tries(3, long=40)
KILLS = tries(3, long=30)
ROLLOUT = {"hosts": "all", "action": "freeze"}

Call = Callable[[httpx.Client], httpx.Response]


@pytest.fixture(params=["sqlite", "postgresql"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Program]:
    flags: list[str | Path] = ["--fleet", sample_fleet(tmp_path)]
    if request.param == "postgresql":
        flags += ["--database", request.getfixturevalue("migrated_postgres_url")]
    with Program(tmp_path, *flags, environment={"FOREWARN_GUEST_RATE": "0"}) as program:
        yield program


def race(program: Program, calls: Sequence[Call]) -> list[httpx.Response]:
    """Make calls at the same time, each on its own connection; return their answers."""
    line = threading.Barrier(len(calls), timeout=PATIENCE)

    def run(call: Call) -> httpx.Response:
        with operator_client(program.operators) as client:
            client.get("/healthz")  # opens the connection
            line.wait()
            return call(client)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def sending(path: str, body: object = None, *, key: str | None = None) -> Call:
    headers = {} if key is None else {"Idempotency-Key": key}
    return lambda client: client.post(path, json=body, headers=headers)


def statuses(answers: Sequence[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def the_one(answers: Sequence[httpx.Response], status: int) -> httpx.Response:
    (found,) = (answer for answer in answers if answer.status_code == status)
    return found


def test_concurrent_calls_with_one_key_are_done_once(program: Program) -> None:
    for number in range(ROUNDS):
        sent = sending("/v1/rollouts", {**ROLLOUT, "overlap": True}, key=f"key-{number}")
        answers = race(program, [sent] * RACERS)
        assert statuses(answers) == {202: RACERS}
        assert len({answer.content for answer in answers}) == 1
        assert Counter("Idempotency-Replayed" in answer.headers for answer in answers)[False] == 1
        assert len(program.all("rollouts")) == number + 1
        shown = program.get(f"/v1/rollouts/{answers[0].json()['rollout']['id']}")["rollout"]
        assert shown["hosts"] == answers[0].json()["rollout"]["hosts"]


def test_of_equal_concurrent_rollouts_one_is_accepted_and_the_other_answers_name_it(program: Program) -> None:
    for number in range(ROUNDS):
        answers = race(program, [sending("/v1/rollouts", ROLLOUT)] * RACERS)
        assert statuses(answers) == {202: 1, 409: RACERS - 1}
        taken = the_one(answers, 202).json()["rollout"]["id"]
        assert all(f"rollout {taken}" in answer.text for answer in answers if answer.status_code == 409)
        assert len(program.all("rollouts")) == number + 1
        program.post(f"/v1/rollouts/{taken}/abort")


def test_of_different_concurrent_calls_with_one_key_one_is_done(program: Program) -> None:
    for number in range(ROUNDS):
        bodies = [{"seconds": 1 + racer} for racer in range(RACERS)]
        before = len(advances(program))
        answers = race(program, [sending("/v1/clock/advance", body, key=f"key-{number}") for body in bodies])
        assert statuses(answers) == {200: 1, 409: RACERS - 1}
        assert len(advances(program)) == before + 1
        assert program.get("/v1/clock") == the_one(answers, 200).json()


def test_of_concurrent_calls_one_sets_a_hold_and_one_releases_it(program: Program) -> None:
    for _ in range(ROUNDS):
        answers = race(program, [sending("/v1/holds", {"reason": "racing"})] * RACERS)
        assert statuses(answers) == {201: 1, 409: RACERS - 1}
        hold = the_one(answers, 201).json()["hold"]
        assert [each["id"] for each in program.get("/v1/holds")["holds"]] == [hold["id"]]
        answers = race(program, [sending(f"/v1/holds/{hold['id']}/release")] * RACERS)
        assert statuses(answers) == {200: 1, 404: RACERS - 1}
        assert program.get("/v1/holds")["holds"] == []


def test_the_answers_of_racing_approvals_and_cancellations_agree_with_the_store(program: Program) -> None:
    for _ in range(ROUNDS):
        # Each round takes an hour, and a day without a poll disables the group.
        program.guest("127.0.1.10").document()
        program.advance(60)
        event = program.post("/v1/machines/web-0/restart")["event"]["id"]
        verbs = ["approve", "cancel"] * (RACERS // 2)
        random.shuffle(verbs)
        answers = race(program, [sending(f"/v1/events/{event}/{verb}") for verb in verbs])
        by_verb = {
            verb: statuses([answer for answer, each in zip(answers, verbs, strict=True) if each == verb])
            for verb in ("approve", "cancel")
        }
        assert by_verb["approve"].keys() <= {200, 409}
        assert by_verb["cancel"].keys() <= {200, 409}
        shown = program.get(f"/v1/events/{event}")["event"]
        order = program.get(f"/v1/orders/{shown['order']}")["order"]
        # Either one cancellation succeeded and the order never began, or it was approved and began.
        assert by_verb["cancel"][200] == (order["state"] == "cancelled")
        assert (shown["started_at"] is None) == (order["state"] == "cancelled")
        assert by_verb["approve"][200] or order["state"] == "cancelled"
        assert all(step["attempt"] <= 1 for step in order["steps"])
        program.advance(3600)


def advances(program: Program) -> list[dict[str, object]]:
    return [record for record in program.history() if record["kind"] == "clock-advanced"]


class ClockAdvancers:
    """Operators who repeatedly advance the clock by a second, with the answer to each key."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._answered = threading.Semaphore(0)
        self.answers: dict[str, bytes | None] = {}  # None: no answer yet, or lost

    def run_until_killed(self, dice: random.Random) -> None:
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(self._advance, random.Random(dice.getrandbits(64))) for _ in range(4)]
            try:
                for _ in range(dice.randint(1, 40)):
                    assert self._answered.acquire(timeout=PATIENCE)
            finally:
                self._program.process.kill()
            for each in running:
                each.result(PATIENCE)

    def _advance(self, keys: random.Random) -> None:
        with operator_client(self._program.operators) as client, suppress(httpx.TransportError):
            while True:
                key = str(UUID(int=keys.getrandbits(128)))
                self.answers[key] = None
                answer = sending("/v1/clock/advance", {"seconds": 1}, key=key)(client)
                assert answer.status_code == 200
                self.answers[key] = answer.content
                self._answered.release()

    def send_again(self) -> None:
        """Repeat every call; a call that was answered must get the same answer."""
        with operator_client(self._program.operators) as client:
            for key, known in list(self.answers.items()):
                again = sending("/v1/clock/advance", {"seconds": 1}, key=key)(client)
                assert again.status_code == 200
                assert known in (None, again.content)
                self.answers[key] = again.content


def moment(program: Program) -> float:
    return datetime.fromisoformat(program.get("/v1/clock")["now"]).timestamp()


@pytest.mark.usefixtures("with_fsync")
def test_calls_whose_answers_are_lost_in_a_kill_are_done_once_and_answered_again(program: Program) -> None:
    dice, begun, advancers = random.Random(2026), moment(program), ClockAdvancers(program)
    for kills in range(1, KILLS + 1):
        advancers.run_until_killed(dice)
        program.restart()
        advancers.send_again()
        assert len(advances(program)) == len(advancers.answers)
        # Another advance may have passed the target of a saved one before that was repeated.
        assert len(advancers.answers) - kills <= moment(program) - begun <= len(advancers.answers)
