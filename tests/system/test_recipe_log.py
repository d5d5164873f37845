"""The recipe that logs every event."""

import re
from pathlib import Path

import pytest

from forewarn.agent.journal.entries import Approved, Over
from tests.helpers.programs.agent_program import AgentProgram, json_lines, serving
from tests.helpers.programs.process import Program, until
from tests.helpers.programs.recipe_agents import agent_with

# Each order, its event, and whether the recipe approves it.
ORDERS = (
    ("hosts/host-1/maintenance", {"action": "freeze"}, "Freeze", "Platform", False),
    ("machines/batch_0/restart", None, "Reboot", "User", True),
    ("machines/batch_0/redeploy", None, "Redeploy", "User", True),
    ("machines/batch_0/evict", None, "Preempt", "Platform", False),
)


def ordered(service: Program, path: str, body: dict[str, str] | None) -> str:
    """Place an order, and return the id of the event that names the machine."""
    service.post(f"/v1/{path}", json=body)
    events = service.all("events")
    (found,) = [each["id"] for each in events if "batch_0" in each["resources"]]
    return str(found)


def lines_of_handler(agent: AgentProgram, event: str) -> list[str]:
    """Return the messages of the handler about an event. Messages of the agent have more fields."""
    lines = json_lines(agent.out.lines)
    assert all({"at", "level", "message"} <= line.keys() for line in lines)
    own = {"at", "level", "message", "event", "handler"}
    return [line["message"] for line in lines if line.keys() == own and line["event"] == event]


@pytest.mark.parametrize(("path", "body", "type_", "source", "approved"), ORDERS)
def test_every_event_is_logged_when_it_is_announced_and_when_it_is_over(
    tmp_path: Path, path: str, body: dict[str, str] | None, type_: str, source: str, approved: bool
) -> None:
    with (
        serving(tmp_path) as service,
        agent_with("log", service=service, machine="batch_0", folder=tmp_path) as agent,
    ):
        event = ordered(service, path, body)
        until(lambda: lines_of_handler(agent, event), what="the first line")
        if approved:
            agent.wait_for(Approved)
        service.advance(3600)
        agent.wait_for(Over)
        agent.out.wait_for("recovered: the event is over")
        coming, over = lines_of_handler(agent, event)
        assert re.fullmatch(rf"{type_} of batch_0 is Scheduled \({source}\), \d+ s left: .*", coming)
        assert over == f"{type_} of batch_0 is over"
        assert any(isinstance(entry, Approved) for entry in agent.entries()) is approved
