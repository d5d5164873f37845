"""A database that hangs, restarts, closes connections or has none left: callers are answered in time.

Afterwards the store has every answered order exactly once, and nothing else.
"""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.helpers.database.outage_load import (
    Load,
    address_of,
    check_books,
    check_in_time,
    check_polls,
    name_of,
    write_fleet,
)
from tests.helpers.database.own_postgresql import OwnPostgres, own_postgres
from tests.helpers.programs.process import Program, until
from tests.helpers.service.counts import LONG

# The load places no orders for these machines: it starts with the lowest numbers.
QUIET, APPROVED = 899, 898


@pytest.fixture(scope="module")
def postgres() -> Iterator[OwnPostgres]:
    with own_postgres() as server:
        server.run("CREATE ROLE forewarn LOGIN; CREATE ROLE others LOGIN")
        yield server


@pytest.fixture
def database(postgres: OwnPostgres) -> str:
    name = f"fleet_{len(postgres.run('SELECT datname FROM pg_database'))}"
    postgres.run(f"CREATE DATABASE {name} OWNER forewarn")
    return name


@pytest.fixture
def program(tmp_path: Path, postgres: OwnPostgres, database: str) -> Iterator[Program]:
    url = postgres.url.replace("postgres:@/postgres?", f"forewarn@/{database}?")
    flags = ("--database", url, "--fleet", write_fleet(tmp_path))
    environment = {"FOREWARN_GUEST_RATE": "0", "FOREWARN_OPERATOR_RATE": "0"}
    with Program(tmp_path, *flags, clock="system", environment=environment) as program:
        yield program


def is_ready(program: Program) -> bool:
    return program.call("GET", "/readyz").status_code == 200


def check_recovered(program: Program, load: Load) -> None:
    """Check that the server recovers without help."""
    until(lambda: is_ready(program), what="the server to be ready again")
    before = len(load.answered(202))
    with load.going_on():
        until(lambda: len(load.answered(202)) > before, what="orders to be accepted again")
    check_books(load, program)
    assert program.stop() == 0
    assert "Traceback" not in program.err.text


def begin(load: Load) -> None:
    until(lambda: len(load.answered(202)) >= 8, what="some orders")


def test_a_stopped_database_delays_no_caller(program: Program, postgres: OwnPostgres) -> None:
    guest, other = (program.guest(address_of(number)) for number in (QUIET, APPROVED))
    guest.document(), other.document()
    event = program.post(f"/v1/machines/{name_of(APPROVED)}/restart")["event"]
    before, load = guest.poll().content, Load(program)
    with load.going_on():
        begin(load)
        with postgres.stopped():
            # While the worker waits, and after it has detected the silence.
            for _ in range(2):
                check_polls(guest, before)
                assert program.call("GET", "/healthz").status_code == 200
                until(lambda: not is_ready(program), what="the silence to be noticed")
            until(lambda: len(load.answered(503)) >= 8, what="refusals")
            assert other.approve(event["id"]).status_code == 503
            assert program.call("GET", "/v1/machines").status_code == 503
            check_polls(guest, before)
    check_in_time(load)
    until(lambda: other.approve(event["id"]).status_code == 200, what="approvals to be accepted again")
    assert guest.poll().content == before
    check_recovered(program, load)


def test_a_database_with_hanging_connections_delays_no_caller(
    program: Program, postgres: OwnPostgres
) -> None:
    guest = program.guest(address_of(QUIET))
    before, load = guest.document() and guest.poll().content, Load(program)
    with load.going_on():
        begin(load)
        with postgres.hung(whose="forewarn"):
            # The first calls wait for the database; later calls fail fast.
            until(lambda: len([each for each in load.answered(503) if each.took < 1]) >= 8, what="refusals")
            assert program.post("/v1/holds", json={"reason": "it burns"})["hold"]["saved"] is False
            check_polls(guest, before)
    check_in_time(load)
    until(lambda: program.get("/v1/holds")["holds"][0]["saved"], what="the hold to be saved")
    check_recovered(program, load)


# Commits with a new order wait for a lock that the test holds, without a timeout.
COMMITS_WAIT = """
    CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7, 7); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER wait_for_test AFTER INSERT ON orders
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_test()
"""
WAITING = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (7, 7) AND NOT granted"


def test_the_same_key_finds_an_order_whose_commit_had_no_answer(
    program: Program, postgres: OwnPostgres, database: str
) -> None:
    def order() -> httpx.Response:
        key = {"Idempotency-Key": "once"}
        return program.call("POST", f"/v1/machines/{name_of(QUIET)}/restart", headers=key)

    with psycopg.connect(postgres.url.replace("/postgres?", f"/{database}?"), autocommit=True) as holder:
        holder.execute(COMMITS_WAIT)
        holder.execute("SELECT pg_advisory_lock(7, 7)")
        with ThreadPoolExecutor(1) as caller:
            asked = caller.submit(order)
            until(lambda: postgres.run(WAITING), what="the commit to wait")
            with postgres.stopped():
                first = asked.result()
                until(lambda: not is_ready(program), what="the silence to be noticed")
                second = order()
    assert error_of(first)[:2] == (503, "Uncertain")
    assert error_of(second)[:2] == (503, "Unavailable")
    assert error_of(second)[2].endswith("does not answer; nothing was done by this call")
    until(lambda: is_ready(program), what="the server to be ready again")
    found = until(lambda: unless_away(order()), what="orders to be accepted again")
    assert (found.status_code, found.headers.get("Idempotency-Replayed")) == (202, "true")
    assert [order["id"] for order in program.all("orders")] == [found.json()["order"]["id"]]


def error_of(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["message"]


def unless_away(answer: httpx.Response) -> httpx.Response | None:
    return None if answer.status_code == 503 else answer


def test_a_hold_is_set_while_the_database_is_stopped(program: Program, postgres: OwnPostgres) -> None:
    program.operator(program.post("/v1/tokens", json={"name": "olga", "role": "operator"})["secret"])
    assert program.get("/v1/caller")["caller"]["name"] == "olga"
    hold = {"json": {"reason": "it burns"}, "headers": {"Idempotency-Key": "k"}}
    with postgres.stopped():
        held = program.call("POST", "/v1/holds", **hold)
        assert (held.status_code, held.json()["hold"]["saved"]) == (202, False)
        assert program.call("POST", "/v1/holds", **hold).json() == held.json()
        assert program.call("POST", "/v1/holds", json={"reason": "it burns"}).status_code == 409
        passing = program.post("/v1/holds", json={"reason": "by mistake", "host": "host-1"})["hold"]
        assert program.post(f"/v1/holds/{passing['id']}/release")["hold"]["id"] == passing["id"]
        (listed,) = program.get("/v1/holds")["holds"]
        assert (listed["by"], listed["saved"]) == ("olga", False)
        assert "lost if the server ends" in listed["note"]
    until(lambda: is_ready(program), what="the server to be ready again")
    until(lambda: program.get("/v1/holds")["holds"][0]["saved"], what="the hold to be saved")
    (kept,) = program.get("/v1/holds")["holds"]
    assert kept == {**listed, "saved": True, "note": None}
    assert program.call("POST", "/v1/holds", **hold).json()["hold"] == kept
    said = [(each["kind"], each["by"]) for each in program.history() if each["kind"].startswith("hold-")]
    assert said == [("hold-set", "olga"), ("hold-set", "olga"), ("hold-released", "olga")]


def test_no_waiting_work_starts_before_the_hold_is_saved(program: Program, postgres: OwnPostgres) -> None:
    guest = program.guest(address_of(APPROVED))
    guest.document()
    event = program.post(f"/v1/machines/{name_of(APPROVED)}/restart")["event"]
    with postgres.stopped():
        assert guest.approve(event["id"]).status_code == 503
        assert program.post("/v1/holds", json={"reason": "it burns"})["hold"]["saved"] is False
    until(lambda: guest.approve(event["id"]).status_code == 200, what="approvals to be accepted again")
    kinds = [record["kind"] for record in program.history()]
    assert kinds.index("hold-set") < kinds.index("event-approved")
    assert "event-started" not in kinds


@pytest.mark.parametrize("mode", ["immediate", *(["fast"] if LONG else [])])
def test_a_restart_of_the_database_loses_nothing(program: Program, postgres: OwnPostgres, mode: str) -> None:
    load = Load(program)
    with load.going_on():
        begin(load)
        postgres.restart(mode)
    check_in_time(load)
    check_recovered(program, load)


def test_repeatedly_closed_connections_lose_nothing(program: Program, postgres: OwnPostgres) -> None:
    load, pause = Load(program), threading.Event()
    with load.going_on():
        begin(load)
        for _ in range(100 if LONG else 20):
            postgres.cut()
            pause.wait(0.02)
    check_in_time(load)
    check_recovered(program, load)


def test_without_free_connections_the_server_refuses_calls_and_recovers(
    program: Program, postgres: OwnPostgres
) -> None:
    load = Load(program)
    with load.going_on():
        begin(load)
        with postgres.used_up(by="others", whose="forewarn"):
            until(lambda: len(load.answered(503)) >= 4, what="refusals")
            assert program.post("/v1/holds", json={"reason": "it burns"})["hold"]["saved"] is False
    check_in_time(load)
    until(lambda: is_ready(program), what="the server to be ready again")
    until(
        lambda: [hold["saved"] for hold in program.get("/v1/holds")["holds"]] == [True],
        what="the hold to be saved",
    )
    check_recovered(program, load)


def test_on_a_read_only_database_the_server_refuses_calls_and_recovers(
    program: Program, postgres: OwnPostgres
) -> None:
    load = Load(program)
    with load.going_on():
        begin(load)
        postgres.run("ALTER ROLE forewarn SET default_transaction_read_only = on")
        postgres.cut()
        until(lambda: len(load.answered(503)) >= 4, what="refusals")
        assert program.get("/v1/machines")["machines"]  # reads still work
        assert program.post("/v1/holds", json={"reason": "it burns"})["hold"]["saved"] is False
        assert [hold["saved"] for hold in program.get("/v1/holds")["holds"]] == [False]
        postgres.run("ALTER ROLE forewarn RESET default_transaction_read_only")
        postgres.cut()
    check_in_time(load)
    check_recovered(program, load)


def test_an_sqlite_file_that_another_process_has_locked_delays_no_caller(tmp_path: Path) -> None:
    environment = {"FOREWARN_GUEST_RATE": "0", "FOREWARN_OPERATOR_RATE": "0"}
    with Program(
        tmp_path, "--fleet", write_fleet(tmp_path), clock="system", environment=environment
    ) as program:
        guest, load = program.guest(address_of(QUIET)), Load(program)
        before = guest.poll().content
        with load.going_on():
            begin(load)
            with closing(sqlite3.connect(tmp_path / "forewarn.db", isolation_level=None)) as other:
                until(lambda: is_locked_by(other), what="the lock")
                until(lambda: len(load.answered(503)) >= 8, what="refusals")
                assert program.get("/v1/machines")["machines"]  # reading needs no lock
                assert program.post("/v1/holds", json={"reason": "it burns"})["hold"]["saved"] is False
                assert program.get("/v1/summary")["summary"]["holds"] == 1
                check_polls(guest, before)
        check_in_time(load)
        check_recovered(program, load)


def is_locked_by(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return False
    return True
