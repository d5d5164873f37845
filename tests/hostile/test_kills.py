"""`kill -9` under load, on both databases: every answered call survives, and nothing is half done."""

import random
from pathlib import Path

import pytest

from forewarn.core.policy import Policy
from forewarn.store.store import open_store
from tests.helpers.programs.load import GuestLedger, Load, check, finish, kill_at_start
from tests.helpers.programs.process import Program, sample_fleet
from tests.helpers.service.counts import tries
from tests.rules import Change, misplaced, unexplained, violations

pytestmark = pytest.mark.usefixtures("with_fsync")

KILLS = tries(3, long=30)
# The fraction of starts after a kill that are killed, too.
KILLED_STARTS = 1 / 3


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        url: str = request.getfixturevalue("migrated_postgres_url")
        return url
    return f"sqlite:///{tmp_path}/forewarn.db"


def check_nothing_is_half_done(database: str) -> None:
    """Check the database of a killed server before another server starts on it."""
    store = open_store(database, new_id=str, without_migration=True)
    try:
        with store.read() as snapshot:
            left, now = snapshot.rules.everything(), snapshot.time.reached()
    finally:
        store.close()
    assert now is not None
    nothing_new = Change(before=left, after=left, records=(), now=now, policy=Policy())
    assert violations(nothing_new) + misplaced(left) + unexplained(left) == []


def test_answered_calls_survive_every_kill(tmp_path: Path, database: str) -> None:
    dice, ledger = random.Random(database.partition(":")[0]), GuestLedger()
    flags = ("--fleet", sample_fleet(tmp_path), "--database", database)
    with Program(tmp_path, *flags, environment={"FOREWARN_GUEST_RATE": "0"}) as program:
        for _ in range(KILLS):
            Load(program, ledger, dice).run_until_killed(answers=dice.randint(60, 200))
            program.kill()
            check_nothing_is_half_done(database)
            if dice.random() < KILLED_STARTS:
                kill_at_start(program, dice)
                check_nothing_is_half_done(database)
            program.start()
            check(program, ledger)
        assert ledger.orders
        assert ledger.approved
        assert ledger.tags
        finish(program, ledger)
        check(program, ledger)
