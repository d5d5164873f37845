"""The recipe for a pair of PostgreSQL servers, with two real ones: no acknowledged write is lost."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Ending, Over
from tests.helpers.programs.agent_program import AgentProgram, serving
from tests.helpers.programs.process import Program, free_port, until
from tests.helpers.programs.recipe_agents import EXAMPLES, agent_with, readme, rehearsed
from tests.system.postgresql_servers import (
    BIN,
    TABLE,
    Database,
    Look,
    Writer,
    as_postgres,
    folder_for_postgres,
    give_to_postgres,
)

TRY_AGAIN = 75
# Settings beyond those of the README: for speed, and to run beside another server.
CONFIG = """
data_directory = '{folder}/data'
hba_file = '{folder}/hba'
port = {port}
listen_addresses = '127.0.0.1'
fsync = off
shared_buffers = 8MB
wal_log_hints = on
wal_retrieve_retry_interval = 200ms
"""
HBA = """
local all postgres peer
host all,replication forewarn 127.0.0.1/32 scram-sha-256
host all tester 127.0.0.1/32 trust
"""


class Server(Database):
    """A Debian cluster `15/main`. Separate folders stand for separate machines."""

    def __init__(self, folder: Path, data: Path) -> None:
        folder.mkdir()
        super().__init__(free_port(), folder / "data")
        self.folder = folder
        subprocess.run(["cp", "-a", data, self.data], check=True)
        self._cluster = folder / "etc" / "15" / "main"
        self._cluster.mkdir(parents=True)
        (folder / "log").touch()
        (folder / "hba").write_text(HBA)
        (self._cluster / "log").symlink_to(folder / "log")
        (self._cluster / "postgresql.conf").write_text(CONFIG.format(folder=folder, port=self.port))
        give_to_postgres(folder, folder / "log", folder / "hba")

    @property
    def peer(self) -> str:
        """The connection string with which the other server finds this one."""
        passwords = self.folder.parent / "passwords"
        return f"host=127.0.0.1 port={self.port} user=forewarn passfile={passwords}"

    def follow(self, other: "Server") -> None:
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{other.peer}'\n")
        (self.data / "standby.signal").touch()
        give_to_postgres(self.data / "standby.signal")

    def start(self) -> None:
        """Start it with its present configuration, as at boot."""
        as_postgres(*self.start_words)

    @property
    def start_words(self) -> list[str]:
        options = f"-c config_file={self._cluster}/postgresql.conf"
        where = ["-D", str(self.data), "-l", str(self.folder / "log"), "-o", options]
        return [str(BIN / "pg_ctl"), "start", "--silent", *where]

    @property
    def stop_words(self) -> list[str]:
        return [str(BIN / "pg_ctl"), "stop", "--silent", "-D", str(self.data)]

    def places(self, other: "Server") -> dict[str, str]:
        """Return the replacements in the recipe's config for this machine and its peer."""
        return {
            "host=10.0.0.11 port=5432 user=forewarn": other.peer,
            '"5432"': f'"{self.port}"',
            "/var/lib/postgresql/15/main": str(self.data),
            "/etc/postgresql/15": f"{self._cluster.parent}",
            "/var/lib/forewarn/postgresql.state": str(self.folder / "state"),
            'REPAIR = "yes"': f'REPAIR = "yes"\nPG_CLUSTER_CONF_ROOT = "{self.folder}/etc"',
            'retry = "5s"': 'retry = "1s"',
        }

    def run(self, side: str, other: "Server", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run the recipe's program without an agent."""
        own = {
            "PEER": other.peer,
            "PORT": str(self.port),
            "DATA": str(self.data),
            "CONFIG": str(self._cluster / "postgresql.conf"),
            "BIN": str(BIN),
            "START": shlex.join(self.start_words),
            "STOP": shlex.join(self.stop_words),
            "STATE": str(self.folder / "state"),
            "STANDBY_SECONDS": "2",
            "REPAIR": "yes",
        }
        program = EXAMPLES / "postgresql" / "switchover"
        return as_postgres(program, side, environment={**os.environ, **own, **more}, check=False)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with folder_for_postgres() as folder:
        yield folder


@pytest.fixture(scope="module")
def template(place: Path) -> Path:
    """Create the data directory that both servers of each pair start with, prepared as in the README."""
    made = place / "template"
    made.mkdir()
    give_to_postgres(made)
    data = made / "data"
    # Small segments, because every test copies them.
    as_postgres(
        BIN / "initdb",
        *("--pgdata", data, "--no-sync", "--no-instructions", "--auth", "trust", "--wal-segsize", "1"),
    )
    (sql,) = re.findall(r"```sql\n(.*?)```", readme("postgresql"), re.DOTALL)
    lines = [*sql.splitlines(), "CREATE ROLE tester SUPERUSER LOGIN;", f"{TABLE};", ""]
    as_postgres(BIN / "postgres", "--single", "-F", "-D", data, "postgres", given="\n".join(lines))
    (passwords := place / "passwords").write_text("127.0.0.1:*:*:forewarn:change-me\n")
    passwords.chmod(0o600)
    give_to_postgres(passwords)
    return data


@pytest.fixture
def pair(place: Path, template: Path) -> Iterator[tuple[Server, Server]]:
    """Run a primary and its standby."""
    for name in ("a", "b"):
        shutil.rmtree(place / name, ignore_errors=True)
    primary, standby = Server(place / "a", template), Server(place / "b", template)
    standby.follow(primary)
    try:
        primary.start()
        standby.start()
        until(standby.streams, what="the standby to stream")
        yield primary, standby
    finally:
        primary.kill()
        standby.kill()


def agent_of(service: Program, machine: str, folder: Path, server: Server, other: Server) -> AgentProgram:
    return agent_with(
        "postgresql", service=service, machine=machine, folder=folder, places=server.places(other)
    )


def test_the_standby_takes_over_and_no_write_is_lost(tmp_path: Path, pair: tuple[Server, Server]) -> None:
    old, new = pair
    writer, look = Writer(pair), Look(pair)
    with (
        serving(tmp_path) as service,
        agent_of(service, "db", tmp_path, old, new) as agent,
        look.looking(),
        writer.writing(),
    ):
        writer.more()
        service.post("/v1/machines/db/redeploy")
        # The agent is killed halfway. Its program continues, and the next agent waits for it.
        agent.out.wait_for("stopping the primary")
        agent.kill()
        agent.start()
        agent.wait_for(Approved)
        # The switchover happened before the approval, not because of it.
        assert (old.is_primary(), new.is_primary()) == (False, True)
        writer.more()

        old.kill()
        agent.kill()
        writer.more()
        old.start()
        agent.start()
        service.advance(900)
        agent.wait_for(Over)
        agent.out.wait_for(f"this is a standby of 127.0.0.1:{new.port}")
        assert old.streams()

        # The next event finds no role to hand over.
        event = service.post("/v1/machines/db/restart")["event"]["id"]
        agent.wait_for(Approved, event=event)
        agent.out.wait_for("this is a standby: nothing to hand over")
        assert new.is_primary()
    writer.assert_all_are_in(new)


def test_without_a_healthy_standby_the_agent_does_not_approve(
    tmp_path: Path, pair: tuple[Server, Server]
) -> None:
    primary, standby = pair
    standby.kill()
    with serving(tmp_path) as service, agent_of(service, "db", tmp_path, primary, standby) as agent:
        service.post("/v1/machines/db/redeploy")
        agent.wait_for(Ended, side=Side.PREPARE, ending=Ending.AGAIN)
        agent.out.wait_for(f"127.0.0.1:{standby.port} does not answer")
        assert primary.is_primary()
        assert not any(isinstance(entry, Approved) for entry in agent.entries())
        standby.start()
        agent.wait_for(Approved)
        assert standby.is_primary()


# The program without an agent

# Kills the calling program, like a crash.
CRASH = "kill -9 $PPID"


@pytest.mark.parametrize("machine_restarts", [False, True], ids=["cancelled", "restarted"])
def test_a_crash_before_the_promotion_leaves_the_old_primary_in_its_role(
    pair: tuple[Server, Server], machine_restarts: bool
) -> None:
    old, new = pair
    # The worst moment: the old primary has stopped, and the standby is not yet promoted.
    crashed = old.run("prepare", new, STOP=f"sh -c '{shlex.join(old.stop_words)}; {CRASH}'")
    assert crashed.returncode == -signal.SIGKILL
    assert (old.is_primary(), new.is_primary()) == (False, False)
    if machine_restarts:
        old.start()
        assert not old.is_primary(), "whatever starts it starts a standby"
    assert recovered(old, new) == "this is the primary\n"
    assert (old.is_primary(), new.is_primary()) == (True, False)
    until(new.streams, what="the standby to stream")


def test_the_next_attempt_completes_a_switchover_after_a_crash(pair: tuple[Server, Server]) -> None:
    old, new = pair
    crashed = old.run("prepare", new, START=f"sh -c '{CRASH}'")
    assert crashed.returncode == -signal.SIGKILL
    assert (old.is_primary(), new.is_primary()) == (False, True)
    assert old.run("prepare", new).returncode == 0
    assert recovered(old, new).endswith(f"this is a standby of 127.0.0.1:{new.port}\n")
    assert old.streams()


def test_a_standby_that_lacks_the_last_record_is_not_promoted(pair: tuple[Server, Server]) -> None:
    old, new = pair
    # The standby does not replay while the primary stops.
    pause = f"psql -h 127.0.0.1 -p {new.port} -U tester -d postgres -c 'SELECT pg_wal_replay_pause()'"
    script = old.folder / "pause-and-stop"
    script.write_text(f"#!/bin/sh\n{pause}\n{shlex.join(old.stop_words)}\n")
    script.chmod(0o755)
    refused = old.run("prepare", new, STOP=str(script), FOREWARN_SECONDS_LEFT="10")
    assert refused.returncode == TRY_AGAIN
    assert refused.stdout.splitlines()[-1] == (
        f"127.0.0.1:{new.port} has not replayed the last record: this is the primary again"
    )
    assert (old.is_primary(), new.is_primary()) == (True, False)


def test_a_standby_that_a_person_promotes_during_the_switchover_stays_the_only_primary(
    pair: tuple[Server, Server],
) -> None:
    old, new = pair
    promote = f"psql -h 127.0.0.1 -p {new.port} -U tester -d postgres -c 'SELECT pg_promote()'"
    script = old.folder / "stop-and-promote"
    script.write_text(f"#!/bin/sh\n{shlex.join(old.stop_words)}\n{promote}\n")
    script.chmod(0o755)
    handed = old.run("prepare", new, STOP=str(script))
    assert handed.returncode == 0, handed.stdout
    assert (old.is_primary(), new.is_primary()) == (False, True)
    assert recovered(old, new).endswith(f"this is a standby of 127.0.0.1:{new.port}\n")
    assert old.streams()


@pytest.mark.parametrize("way", ["rewinding", "copying"])
def test_a_stale_primary_is_repaired_after_a_person_has_promoted_the_standby(
    pair: tuple[Server, Server], way: str
) -> None:
    old, new = pair
    assert old.run("prepare", new, FOREWARN_SECONDS_LEFT="1").returncode == TRY_AGAIN
    new.ask("SELECT pg_promote()")
    with old.connection() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")
    stopped = old.run("recover", new, REPAIR="no", STANDBY_SECONDS="0")
    assert "promoted meanwhile: this server stops" in stopped.stdout
    assert stopped.returncode == 1, stopped.stdout
    assert (old.is_primary(), new.is_primary()) == (False, True)
    programs = BIN if way == "rewinding" else without_pg_rewind(old.folder)
    said = recovered(old, new, BIN=str(programs))
    assert ("Done!" if way == "rewinding" else "copying") in said
    assert old.streams()
    assert old.ask("SELECT count(*) FROM numbers") == "0"


def recovered(server: Server, other: Server, **more: str) -> str:
    """Run `recover` like the agent until it succeeds, and return its output."""
    said = []

    def is_done() -> bool:
        ran = server.run("recover", other, **more)
        said.append(ran.stdout)
        assert ran.returncode in (0, TRY_AGAIN), ran.stdout
        return ran.returncode == 0

    until(is_done, what="the server to recover")
    return "".join(said)


def without_pg_rewind(folder: Path) -> Path:
    """Create a folder of PostgreSQL's programs in which pg_rewind fails."""
    made = folder / "bin"
    made.mkdir()
    for program in BIN.iterdir():
        (made / program.name).symlink_to("/bin/false" if program.name == "pg_rewind" else program)
    return made


def test_two_primaries_before_the_event_are_left_to_an_administrator(pair: tuple[Server, Server]) -> None:
    old, new = pair
    new.ask("SELECT pg_promote()")
    refused = old.run("prepare", new)
    assert refused.returncode == 1
    assert "a person must stop one of them" in refused.stdout
    assert old.run("recover", new).returncode == 0
    assert old.is_primary()


def test_the_rehearsal_of_the_readme_succeeds(tmp_path: Path, pair: tuple[Server, Server]) -> None:
    old, new = pair
    rehearsed("postgresql", tmp_path, old.places(new))
    assert (old.is_primary(), new.is_primary()) == (False, True)
