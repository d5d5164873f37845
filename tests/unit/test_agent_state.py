"""How others see a running agent: metrics, status, a line for systemd."""

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from forewarn.agent.journal.entries import Left, TakenUp
from forewarn.agent.journal.tracked_events import replay
from forewarn.agent.reporting.agent_state import AgentState
from forewarn.agent.setup.agent_config import AgentSettings, Config
from forewarn.cli.guest_side import agent_status
from forewarn.sdk.documents import Event
from tests.agents import NOW, event, started


@dataclass
class Endpoint:
    """What an agent knows of its endpoint."""

    silent_for: float | None = None
    url: str | None = None
    now: datetime = NOW

    def seconds_left(self, event: Event) -> float | None:
        return event.seconds_left(self.now)


@dataclass
class Watcher:
    """How far a watch is."""

    informed: bool
    machine: str = "web-0"
    trouble: str | None = None


def agent_with(*events: Event, **known: Any) -> AgentState:
    state = AgentState(
        config=Config(agent=AgentSettings()),
        endpoint=Endpoint(**known),  # type: ignore[arg-type]
        now=lambda: NOW,
        began=NOW,
        dry=False,
    )
    state.journal.tracked_events = replay(TakenUp(event=each, at=NOW) for each in events)
    return state


def gauges(state: AgentState) -> dict[str, float]:
    text = state.pages()["/metrics"]().content.decode()
    return {
        name: float(value) for name, value in re.findall(r"^forewarn_agent_(\w+) (\S+)$", text, re.MULTILINE)
    }


def test_the_seconds_left_are_those_of_the_first_event() -> None:
    soon = event("B", not_before=NOW + timedelta(seconds=30))
    assert gauges(agent_with(event("A"), soon))["seconds_left"] == 30
    assert gauges(agent_with(soon, started("C")))["seconds_left"] == 0


def test_without_an_event_there_are_no_seconds_left() -> None:
    assert "seconds_left" not in gauges(agent_with())
    over = agent_with(event())
    over.journal.tracked_events = replay(
        [TakenUp(event=event(), at=NOW), Left(event="A", at=NOW, why="it is over")]
    )
    assert "seconds_left" not in gauges(over)


@pytest.mark.parametrize("age", [None, 7.5])
def test_the_age_of_the_last_poll_is_told_once_there_was_one(age: float | None) -> None:
    assert gauges(agent_with(silent_for=age)).get("last_poll_age_seconds") == age


@pytest.mark.parametrize(
    ("watcher", "said"),
    [(None, "waiting for the first document"), (Watcher(informed=False), "waiting for the first document")],
)
def test_before_the_first_document_nothing_is_said_to_be_ready(
    watcher: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state = agent_with()
    state.watcher = watcher
    assert state.in_words() == said
    told = json.loads(state.pages()["/status"]().content)
    assert told["informed"] is False
    agent_status.show({"running": True, **told})
    shown = capsys.readouterr().out
    assert said in shown
    assert "ready" not in shown
    assert "No event" not in shown


def test_after_the_first_document_it_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    state = agent_with()
    state.watcher = Watcher(informed=True)  # type: ignore[assignment]
    agent_status.show({"running": True, **json.loads(state.pages()["/status"]().content)})
    assert "ready for work. No event for this machine." in capsys.readouterr().out
    assert state.in_words() == "watching"
