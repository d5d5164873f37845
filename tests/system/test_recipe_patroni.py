"""The recipe for a cluster under Patroni, with real members and etcd: no acknowledged write is lost."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Ending, Over
from tests.helpers.programs.agent_program import AgentProgram, serving
from tests.helpers.programs.process import PATIENCE, Process, Program, free_port, running, until
from tests.helpers.programs.recipe_agents import agent_with
from tests.system.postgresql_servers import (
    BIN,
    TABLE,
    Database,
    Look,
    Writer,
    folder_for_postgres,
    give_to_postgres,
)

# `make test-system` unpacks Debian's package here, because its installation would start a server.
ETCD = Path(sys.prefix) / "etcd-server/usr/bin/etcd"
# A member checks every second, so a switchover takes about three.
DYNAMIC = {
    "ttl": 20,
    "loop_wait": 1,
    "retry_timeout": 3,
    "postgresql": {"use_pg_rewind": True, "parameters": {"wal_log_hints": "on"}},
}
HBA = ["local all all trust", "host all,replication all 127.0.0.1/32 trust"]
AS_POSTGRES = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]


class Member(Database):
    """A member of the cluster: Patroni, and the server that it runs."""

    def __init__(self, name: str, folder: Path, etcd: int) -> None:
        folder.mkdir()
        super().__init__(free_port(), folder / "data")
        self.name = name
        self.config = folder / "config.yml"
        self.state = folder / "state"
        self._folder = folder
        self._stack = ExitStack()
        self.patroni: Process | None = None
        api = f"127.0.0.1:{free_port()}"
        server = f"127.0.0.1:{self.port}"
        config = {
            "scope": "demo",
            "name": name,
            "etcd3": {"hosts": f"127.0.0.1:{etcd}"},
            "restapi": {"listen": api, "connect_address": api},
            "bootstrap": {"dcs": DYNAMIC, "initdb": ["no-sync", {"auth": "trust"}, {"wal-segsize": "1"}]},
            "postgresql": {
                "listen": server,
                "connect_address": server,
                "data_dir": str(self.data),
                "bin_dir": str(BIN),
                "pgpass": str(folder / "passwords"),
                "parameters": {
                    "fsync": "off",
                    "shared_buffers": "8MB",
                    "unix_socket_directories": str(folder),
                },
                "pg_hba": HBA,
                "authentication": {
                    "superuser": {"username": "tester"},
                    "replication": {"username": "tester"},
                },
            },
        }
        self.config.write_text(json.dumps(config))  # JSON is valid YAML
        give_to_postgres(folder)

    def start(self) -> None:
        self.patroni = self._stack.enter_context(
            running([*AS_POSTGRES, "patroni", str(self.config)], self._folder)
        )

    def stop(self) -> None:
        """Stop it like systemd: Patroni stops the server."""
        assert self.patroni is not None
        self.patroni.terminate()
        self.patroni.wait(PATIENCE)
        self._stack.close()

    def switch_off(self) -> None:
        """Kill it as if its machine lost power."""
        if self.patroni is not None:
            self.patroni.kill()
            self.patroni.wait(PATIENCE)
        # Kill the server first. It has inherited Patroni's output, which the test reads to its end.
        self.kill()
        self._stack.close()


@contextmanager
def etcd(folder: Path) -> Iterator[int]:
    """Run an etcd of one node, and return its port."""
    port, peers = free_port(), f"http://127.0.0.1:{free_port()}"
    clients = f"http://127.0.0.1:{port}"
    options = {
        "data-dir": folder / "etcd",
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"default={peers}",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    with running([str(ETCD), "--unsafe-no-fsync", *words], folder):
        yield port


@pytest.fixture
def members() -> Iterator[tuple[Member, Member]]:
    """Run a leader and a replica that streams from it."""
    with folder_for_postgres() as folder, etcd(folder) as port:
        leader, replica = Member("db-a", folder / "a", port), Member("db-b", folder / "b", port)
        try:
            leader.start()
            until(leader.is_primary, what="Patroni to make a cluster")
            with leader.connection() as connection:
                connection.execute(TABLE)
            replica.start()
            until(replica.streams, what="the replica to stream")
            yield leader, replica
        finally:
            leader.switch_off()
            replica.switch_off()


def agent_of(service: Program, machine: str, folder: Path, member: Member) -> AgentProgram:
    places = {
        "{ CONFIG": f'{{ MEMBER = "{member.name}", CONFIG',
        "/etc/patroni/15-main.yml": str(member.config),
        "/var/lib/forewarn/patroni.state": str(member.state),
        'retry = "5s"': 'retry = "1s"',
    }
    return agent_with("patroni", service=service, machine=machine, folder=folder, places=places)


def test_a_healthy_replica_takes_over_and_no_write_is_lost(
    tmp_path: Path, members: tuple[Member, Member]
) -> None:
    old, new = members
    writer, look = Writer(members), Look(members)
    with (
        serving(tmp_path) as service,
        agent_of(service, "db", tmp_path, old) as agent,
        look.looking(),
        writer.writing(),
    ):
        writer.more()
        new.stop()
        service.post("/v1/machines/db/redeploy")
        assert_held(agent, "no healthy replica: db-b is stopped")
        assert old.is_primary()
        new.start()

        # The agent is killed halfway. Its program continues, and the next agent waits for it.
        agent.out.wait_for("switching over to db-b")
        agent.kill()
        agent.start()
        agent.wait_for(Approved)
        assert (old.is_primary(), new.is_primary()) == (False, True)
        writer.more()

        agent.kill()
        old.switch_off()
        writer.more()
        agent.start()
        service.advance(900)
        agent.wait_for(Ended, side=Side.RECOVER, ending=Ending.AGAIN)
        old.start()
        agent.wait_for(Over)
        assert old.streams()

        assert_nothing_to_hand_over(service, agent, "db-a is not the leader: nothing to hand over")
        assert new.is_primary()
        writer.more()
    writer.assert_all_are_in(new)


def assert_held(agent: AgentProgram, reason: str) -> None:
    """Wait until the agent has failed and logged the reason. It has approved nothing."""
    agent.wait_for(Ended, side=Side.PREPARE, ending=Ending.AGAIN)
    agent.out.wait_for(reason)
    assert not any(isinstance(entry, Approved) for entry in agent.entries())


def assert_nothing_to_hand_over(service: Program, agent: AgentProgram, reason: str) -> None:
    """Check that the next event finds a machine that is not the primary."""
    event = service.post("/v1/machines/db/restart")["event"]["id"]
    agent.wait_for(Approved, event=event)
    agent.out.wait_for(reason)
