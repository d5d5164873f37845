"""Kills at any moment: every answered call survives the restart, and nothing is done twice."""

import random
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.helpers.programs.load import GuestLedger, Load, check, finish, kill_at_start, moment
from tests.helpers.programs.process import Program, sample_fleet
from tests.helpers.service.counts import tries

pytestmark = pytest.mark.usefixtures("with_fsync")

KILLS = tries(4, long=30)
# A server also writes during its start: migrations, the fleet, work that has become due.
KILLS_AT_START = tries(2, long=10)
SEEDS = range(2026, 2026 + tries(1, long=5))


@pytest.mark.parametrize("seed", SEEDS)
def test_answered_calls_survive_kills(tmp_path: Path, seed: int) -> None:
    dice, ledger = random.Random(seed), GuestLedger()
    unlimited = {"FOREWARN_GUEST_RATE": "0"}
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=unlimited) as program:
        number = 0
        # On a busy computer there are few answers between two kills, and then more kills.
        while number < KILLS or len(ledger.orders) <= KILLS or not ledger.approved:
            Load(program, ledger, dice).run_until_killed(answers=dice.randint(1, 120))
            program.kill()
            if number < KILLS_AT_START:
                kill_at_start(program, dice)
            program.start()
            check(program, ledger)
            number += 1
        finish(program, ledger)
        check(program, ledger)


@pytest.mark.parametrize("seed", SEEDS)
def test_scaled_time_never_goes_back_after_a_kill(tmp_path: Path, seed: int) -> None:
    dice, last = random.Random(seed), 0.0
    environment = {"FOREWARN_GUEST_RATE": "0"}
    fleet = sample_fleet(tmp_path)
    with Program(tmp_path, "--fleet", fleet, clock="x60", environment=environment) as program:
        for _ in range(5):
            guest = program.guest("127.0.1.10")
            for _ in range(dice.randint(1, 300)):
                now = moment(program.get("/v1/clock")["now"])
                assert now >= last
                date = parsedate_to_datetime(guest.poll().headers["date"]).timestamp()
                assert date >= int(now)
                last = max(now, date)
            program.restart()
        assert moment(program.get("/v1/clock")["now"]) >= last
