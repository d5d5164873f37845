"""The recipe with one leader: three agents, in three machines that one event names."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Over
from forewarn.agent.verdicts import SUCCESSION_SECONDS
from tests.helpers.programs.agent_program import AgentProgram
from tests.helpers.programs.process import Program, free_port
from tests.helpers.programs.recipe_agents import agent_with

NAMES = ("web-0", "web-1", "web-2")
# The second agent approves after 30 s, which take two seconds at this speed; the third would need four.
SPEED = 15.0
FLEET = """
[groups.web]
kind = "availability-set"
update-domains = 1

[defaults]
driver = "simulated"

[hosts.host-1]
"""
MACHINE = """
[[machines]]
name = "{name}"
group = "web"
host = "host-1"
update-domain = 0
port = {port}
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Program]:
    folder = tmp_path / "service"
    folder.mkdir()
    fleet = folder / "fleet.toml"
    fleet.write_text(FLEET + "".join(MACHINE.format(name=name, port=free_port()) for name in NAMES))
    with Program(folder, "--fleet", fleet) as program:
        yield program


@contextmanager
def agents(service: Program, folder: Path, *flags: str) -> Iterator[list[AgentProgram]]:
    """Run an agent in each machine, each with its own folder."""
    with ExitStack() as stack:
        made = []
        for name in NAMES:
            (folder / name).mkdir()
            agent = agent_with("leader", *flags, service=service, machine=name, folder=folder / name)
            made.append(stack.enter_context(agent))
        yield made


def announce(service: Program) -> str:
    """Announce the event that names all three, and return its id."""
    (event,) = service.post("/v1/hosts/host-1/maintenance", json={"action": "reboot"})["events"]
    assert tuple(event["resources"]) == NAMES
    return str(event["id"])


def approvers(machines: list[AgentProgram]) -> list[str]:
    return [
        agent.config.stem
        for agent in machines
        if any(isinstance(entry, Approved) for entry in agent.entries())
    ]


def approved_by(service: Program, event: str) -> list[str]:
    return [each["by"] for each in service.get(f"/v1/events/{event}")["event"]["approvals"]]


def test_all_agents_prepare_and_the_first_one_leads_and_approves(service: Program, tmp_path: Path) -> None:
    with agents(service, tmp_path) as machines:
        event = announce(service)
        for agent in machines:
            agent.wait_for(Ended, side=Side.PREPARE)
        machines[0].wait_for(Approved)
        service.advance(900)
        for agent in machines:
            agent.wait_for(Over)
        assert approvers(machines) == ["web-0"]
        assert approved_by(service, event) == ["web-0"]
        for agent in machines:
            agent.out.wait_for(f"{agent.config.stem} prepares for Reboot")
            agent.out.wait_for(f"{agent.config.stem} has recovered from Reboot")
        assert machines[0].out.wait_for("ready | web-0 leads ").startswith("web-0,web-1,web-2")
        assert not any(" leads " in agent.out.text for agent in machines[1:])


def test_if_the_first_agent_is_down_the_second_approves_after_thirty_seconds(
    service: Program, tmp_path: Path
) -> None:
    with agents(service, tmp_path, "--speed", f"{SPEED:g}") as machines:
        first, second, third = machines
        first.kill()
        event = announce(service)
        approved = second.wait_for(Approved)
        ready = second.wait_for(Ended, side=Side.PREPARE)
        assert isinstance(approved, Approved)
        assert isinstance(ready, Ended)
        assert (approved.at - ready.at).total_seconds() * SPEED >= SUCCESSION_SECONDS
        second.out.wait_for("not approved yet: web-0 is first; this machine approves if that one does not")
        service.advance(900)
        for agent in (second, third):
            agent.wait_for(Over)
        assert approvers(machines) == ["web-1"]
        assert approved_by(service, event) == ["web-1"]

        # The first agent starts when the event is over, and has nothing to do.
        first.start()
        assert first.entries() == []
