"""The same program on PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.helpers.programs.process import PATIENCE, Program, run, sample_fleet, until

WEB_0, WEB_1, SHOP = "127.0.1.10", "127.0.1.11", "127.0.1.20"
FREE = ("--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0")


@pytest.fixture
def program(tmp_path: Path, postgres_url: str) -> Iterator[Program]:
    flags = ("--database", postgres_url, "--fleet", sample_fleet(tmp_path))
    with Program(tmp_path, *flags, environment={"FOREWARN_GUEST_RATE": "0"}) as program:
        yield program


def ask(url: str, query: str, *values: int) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(query, values).fetchone()
    assert found is not None
    return int(found[0])


# Other workers of the test run have databases and locks on the same PostgreSQL.
MINE = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"


def cut(url: str, *, but: int = 0) -> int:
    """Close every connection to a database; return their number."""
    return ask(
        url,
        "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> %s",
        but,
    )


def is_locked(url: str, *, granted: bool = True) -> bool:
    """Whether a server holds the lock or, with `granted=False`, waits for it."""
    query = f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = %s AND {MINE}"
    return ask(url, query, granted) > 0


def is_awaited(url: str) -> bool:
    return is_locked(url, granted=False)


def test_answered_calls_survive_a_kill(program: Program) -> None:
    guest = program.guest(WEB_0)
    guest.document()
    event = program.post("/v1/machines/web-0/restart")["event"]
    assert guest.approve(event["id"]).status_code == 200
    before, now = guest.poll(), program.get("/v1/clock")["now"]
    program.restart()
    after = program.guest(WEB_0).poll()
    assert (after.content, after.headers["etag"]) == (before.content, before.headers["etag"])
    assert program.get("/v1/clock")["now"] == now
    approvals = program.get(f"/v1/events/{event['id']}")["event"]["approvals"]
    assert [(word["by"], word["address"]) for word in approvals] == [("web-0", WEB_0)]
    program.advance(90)
    assert program.guest(WEB_0).document()["Events"] == []


def test_a_second_server_is_refused_and_the_first_continues(
    tmp_path: Path, program: Program, postgres_url: str
) -> None:
    second = run(tmp_path, "serve", *FREE, "--database", postgres_url)
    assert second.returncode == 1
    assert "another server uses" in second.stderr
    assert f"(process {program.process.pid}): stop it first" in second.stderr
    program.post("/v1/machines/web-0/restart")
    assert program.guest(WEB_0).poll().status_code == 200


def test_the_server_survives_the_loss_of_its_connections(program: Program, postgres_url: str) -> None:
    guest = program.guest(WEB_0)
    guest.document()
    event = program.post("/v1/machines/web-0/restart")["event"]
    assert cut(postgres_url) > 0
    assert guest.document()["Events"][0]["EventId"] == event["id"]
    # Either a retry hides it or the caller gets an error; after that calls work again.
    answer = guest.approve(event["id"])
    assert answer.status_code in (200, 503)
    until(lambda: guest.approve(event["id"]).status_code == 200, what="approvals to be taken again")
    program.advance(90)
    assert guest.document()["Events"] == []
    assert program.guest(SHOP).poll().status_code == 200
    assert program.stop() == 0
    assert "Traceback" not in program.err.text


def test_the_server_waits_for_a_database_that_is_away(
    program: Program, postgres_url: str, postgres_server: str
) -> None:
    guest = program.guest(WEB_0)
    before = guest.document()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        assert program.call("POST", "/v1/machines/web-0/restart").status_code == 503
        program.err.wait_for("cannot renew the lock until the database answers")
        assert guest.document() == before
        assert program.call("GET", "/readyz").status_code == 503
        assert program.get("/healthz") == {"status": "ok"}
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    until(lambda: program.call("GET", "/readyz").status_code == 200, what="it to be ready again")
    program.post("/v1/machines/web-0/restart")
    until(lambda: is_locked(postgres_url), what="the lock to be taken again")
    assert program.stop() == 0
    assert "Traceback" not in program.err.text


def test_the_lock_is_taken_again_after_its_connection_is_lost(
    tmp_path: Path, program: Program, postgres_url: str
) -> None:
    assert is_locked(postgres_url)
    assert cut(postgres_url) > 0
    until(lambda: is_locked(postgres_url), what="the lock to be taken again")
    second = run(tmp_path, "serve", *FREE, "--database", postgres_url)
    assert second.returncode == 1
    assert "another server uses" in second.stderr
    program.post("/v1/machines/web-0/restart")


def test_a_server_that_has_lost_its_lock_to_another_ends(
    tmp_path: Path, program: Program, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as thief:
        # Requested while it is held, so that it is granted as soon as the holder is disconnected.
        key = thief.execute(
            "SELECT classid::bigint << 32 | objid::bigint FROM pg_locks "
            f"WHERE locktype = 'advisory' AND {MINE}"
        )
        (number,) = key.fetchone() or (None,)
        thread = threading.Thread(target=thief.execute, args=("SELECT pg_advisory_lock(%s)", [number]))
        thread.start()
        until(lambda: is_awaited(postgres_url), what="the thief to stand at the door")
        cut(postgres_url, but=thief.info.backend_pid)
        thread.join()
        assert program.process.wait(PATIENCE) == 1
        program.err.finish()
    assert "forewarn: another server uses" in program.err.text


def test_an_error_about_a_missing_database_names_it_without_its_password(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", *FREE, "--database", "postgresql://me:secret@127.0.0.1:1/fleet")
    assert refused.returncode == 1
    assert "fleet on 127.0.0.1 cannot be used, check that it is up" in refused.stderr
    assert "secret" not in refused.stderr


def test_a_password_is_not_printed(tmp_path: Path, postgres_url: str) -> None:
    url = postgres_url.replace("postgres:@", "postgres:secret@")
    with Program(tmp_path, "--database", url) as program:
        assert program.stop() == 0
        assert "secret" not in program.out.text + program.err.text
