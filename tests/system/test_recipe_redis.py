"""The recipe for a Redis primary, with a real one and its replica: no acknowledged write is lost."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Ending, Over
from tests.helpers.programs.agent_program import serving
from tests.helpers.programs.process import PATIENCE, free_port, on_a_thread, running, until
from tests.helpers.programs.recipe_agents import agent_with, rehearsed

CONFIG = """
port {port}
bind 127.0.0.1
dir {folder}
appendonly yes
repl-diskless-sync-delay 0
"""
WORTH_A_FAILOVER = 50


class Redis:
    """A Redis with its own config file and disk that can be killed and started again."""

    def __init__(self, folder: Path, *, replica_of: "Redis | None" = None, has_config: bool = True) -> None:
        folder.mkdir()
        self.port = free_port()
        self._config = folder / "redis.conf"
        follows = "" if replica_of is None else f"replicaof 127.0.0.1 {replica_of.port}\n"
        self._config.write_text(CONFIG.format(port=self.port, folder=folder) + follows)
        self._stack = ExitStack()
        # Redis reads this config from stdin too, but then it has no file in which to save its role.
        self._command = (
            ["redis-server", str(self._config)]
            if has_config
            else ["sh", "-c", f"exec redis-server - < {self._config}"]
        )

    def start(self) -> None:
        self._stack.enter_context(running(self._command, self._config.parent))
        until(self._answers, what="Redis to answer")

    def kill(self) -> None:
        """Kill it as if its machine lost power."""
        self._stack.close()

    def info(self, name: str) -> str:
        lines = self.cli("INFO", "replication").splitlines()
        return next((line.partition(":")[2] for line in lines if line.startswith(f"{name}:")), "")

    def cli(self, *words: str) -> str:
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def _answers(self) -> bool:
        return self.cli("PING").strip() == "PONG"


class Writer:
    """Writes consecutive numbers to the primary, and records the acknowledged ones."""

    def __init__(self, *ports: int) -> None:
        self._ports = ports
        self.acknowledged: list[int] = []
        self._over = threading.Event()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with on_a_thread(self._write, self._over):
            yield

    def _write(self) -> None:
        number = turn = 0
        while not self._over.is_set():
            # A refusal shows that the other server is the primary.
            with suppress(OSError), self._connected(self._ports[turn % len(self._ports)]) as stream:
                while not self._over.is_set():
                    stream.write(f"SET key:{number} {number}\r\n".encode())
                    stream.flush()
                    if stream.readline() != b"+OK\r\n":
                        break
                    self.acknowledged.append(number)
                    number += 1
            turn += 1

    @contextmanager
    def _connected(self, port: int) -> Iterator["socket.SocketIO"]:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection,
            connection.makefile("rwb") as stream,
        ):
            yield stream  # type: ignore[misc]

    def more(self, count: int = WORTH_A_FAILOVER) -> None:
        """Wait for this many more acknowledged writes."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + count, what="more to be written")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Redis, Redis]]:
    primary = Redis(tmp_path / "primary")
    replica = Redis(tmp_path / "replica", replica_of=primary)
    try:
        primary.start()
        replica.start()
        until(lambda: "state=online" in primary.info("slave0"), what="the replica to follow")
        yield primary, replica
    finally:
        primary.kill()
        replica.kill()


def test_the_replica_takes_over_and_the_old_primary_returns_as_a_replica(
    tmp_path: Path, pair: tuple[Redis, Redis]
) -> None:
    old, new = pair
    writer = Writer(old.port, new.port)
    places = {"6379": str(old.port)}
    with (
        serving(tmp_path) as service,
        agent_with("redis", service=service, machine="db", folder=tmp_path, places=places) as agent,
        writer.writing(),
    ):
        writer.more()
        service.post("/v1/machines/db/redeploy")
        agent.wait_for(Approved)
        # The failover happened before the approval, not because of it.
        assert (old.info("role"), new.info("role")) == ("slave", "master")
        (ended,) = [entry for entry in agent.entries() if isinstance(entry, Ended)]
        assert (ended.side, ended.ending) == (Side.PREPARE, Ending.READY)
        writer.more()

        old.kill()
        writer.more()
        old.start()
        service.advance(900)
        agent.wait_for(Over)
        assert old.info("role") == "slave"
        assert old.info("master_port") == str(new.port)
        assert old.info("master_link_status") == "up"

        # The next event finds no role to hand over.
        event = service.post("/v1/machines/db/restart")["event"]["id"]
        agent.wait_for(Approved, event=event)
        agent.out.wait_for("this is a replica: nothing to hand over")
        assert new.info("role") == "master"
    assert_all_are_there(new, writer)
    until(lambda: old.info("slave_repl_offset") == new.info("master_repl_offset"), what="it to catch up")
    assert_all_are_there(old, writer)


def assert_all_are_there(redis: Redis, writer: Writer) -> None:
    keys = [f"key:{number}" for number in writer.acknowledged]
    assert len(keys) >= 3 * WORTH_A_FAILOVER
    lost = [key for key, value in zip(keys, values_of(redis, keys), strict=True) if not value]
    assert lost == []


def values_of(redis: Redis, keys: list[str]) -> list[str]:
    """Return values from a Redis, in pieces that fit on a command line."""
    found: list[str] = []
    for begin in range(0, len(keys), 1000):
        found += redis.cli("MGET", *keys[begin : begin + 1000]).splitlines()
    return found


def test_without_a_replica_the_agent_does_not_approve(tmp_path: Path, pair: tuple[Redis, Redis]) -> None:
    old, new = pair
    new.kill()
    until(lambda: old.info("connected_slaves") == "0", what="the replica to be missed")
    places = {"6379": str(old.port)}
    with (
        serving(tmp_path) as service,
        agent_with("redis", service=service, machine="db", folder=tmp_path, places=places) as agent,
    ):
        order = service.post("/v1/machines/db/redeploy")["order"]["id"]
        agent.wait_for(Ended, side=Side.PREPARE, ending=Ending.AGAIN)
        agent.out.wait_for("FAILOVER requires connected replicas")
        assert old.info("role") == "master"
        service.post(f"/v1/orders/{order}/cancel")
        agent.wait_for(Over)
        assert not any(isinstance(entry, Approved) for entry in agent.entries())


def test_a_primary_that_cannot_save_its_new_role_is_not_approved(tmp_path: Path) -> None:
    old = Redis(tmp_path / "old", has_config=False)
    new = Redis(tmp_path / "new", replica_of=old)
    with (
        serving(tmp_path) as service,
        agent_with(
            "redis", service=service, machine="db", folder=tmp_path, places={"6379": str(old.port)}
        ) as agent,
        ExitStack() as stack,
    ):
        for redis in (old, new):
            stack.callback(redis.kill)
            redis.start()
        until(lambda: "state=online" in old.info("slave0"), what="the replica to follow")
        service.post("/v1/machines/db/redeploy")
        agent.wait_for(Ended, side=Side.PREPARE, ending=Ending.NEVER)
        agent.out.wait_for("not approved: failover failed")
        agent.out.wait_for("The server is running without a config file")
        assert new.info("role") == "master"


def test_the_rehearsal_of_the_readme_succeeds(tmp_path: Path, pair: tuple[Redis, Redis]) -> None:
    old, new = pair
    rehearsed("redis", tmp_path, {"6379": str(old.port)})
    assert (old.info("role"), new.info("role")) == ("slave", "master")
