"""The state of a running agent: metrics, status, a line for systemd."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Begun, Changed, Ended, Ending, Entry, Left, TakenUp
from forewarn.agent.journal.tracked_events import replay
from forewarn.agent.probes import AgentState
from forewarn.agent.setup.agent_config import AgentSettings, Config, parse
from forewarn.cli.guest_side import agent_status
from forewarn.sdk.documents import Event
from tests import ROOT
from tests.helpers.programs.agents import NOW, event, started

ALERTS = ROOT / "examples/prometheus/agent-alerts.yml"


@dataclass
class Endpoint:
    """A fake endpoint."""

    silent_for: float | None = None
    url: str | None = None
    now: datetime = NOW

    def seconds_left(self, event: Event) -> float | None:
        return event.seconds_left(self.now)


@dataclass
class Watcher:
    """A fake watcher."""

    informed: bool
    machine: str = "web-0"
    trouble: str | None = None
    held: str | None = None  # the reason why events are not approved

    def not_approved(self, id_: str) -> str | None:
        return self.held


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


def test_the_seconds_left_are_those_of_the_next_event() -> None:
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
def test_the_age_of_the_last_poll_is_absent_before_the_first(age: float | None) -> None:
    assert gauges(agent_with(silent_for=age)).get("last_poll_age_seconds") == age


@pytest.mark.parametrize(
    ("watcher", "said"),
    [(None, "waiting for the first document"), (Watcher(informed=False), "waiting for the first document")],
)
def test_before_the_first_document_the_agent_is_waiting(
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


def test_after_the_first_document_the_agent_is_watching(capsys: pytest.CaptureFixture[str]) -> None:
    state = agent_with()
    state.watcher = Watcher(informed=True)  # type: ignore[assignment]
    agent_status.show({"running": True, **json.loads(state.pages()["/status"]().content)})
    assert "ready for work. No event for this machine." in capsys.readouterr().out
    assert state.in_words() == "watching"


# Failed preparations


DRAIN = """
[agent]
{agent}
[[handlers]]
name = "drain"
kind = "exec"
prepare = ["/bin/false"]
{handler}
"""


def failed_with(agent: str = "", handler: str = "", *more: Entry) -> AgentState:
    state = agent_with()
    state.config = parse(DRAIN.format(agent=agent, handler=handler), environment={})
    share: dict[str, Any] = {"event": "A", "side": Side.PREPARE, "handler": "drain", "at": NOW}
    state.journal.tracked_events = replay(
        [
            TakenUp(event=event(), at=NOW),
            Begun(**share, attempt=1),
            Ended(**share, ending=Ending.NEVER, why="exit code 1"),
            *more,
        ]
    )
    return state


def test_an_event_with_a_failed_preparation_is_not_prepared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = failed_with()
    state.watcher = Watcher(informed=True, held="drain failed")  # type: ignore[assignment]
    told = json.loads(state.pages()["/status"]().content)
    (shown,) = told["events"]
    assert shown["doing"] == "preparation failed"
    assert shown["failed"] == {"drain": "exit code 1"}
    assert shown["not_approved"] == "drain failed"
    assert shown["next"] == (
        "make the machine ready by hand, then let it start early with `forewarn guest approve A`"
    )
    assert "preparation failed" in state.in_words()
    agent_status.show({"running": True, **told})
    printed = capsys.readouterr().out
    assert "not approved: drain failed" in printed
    assert "next: make the machine ready by hand" in printed
    journal = {"running": False, "journal": "agent.journal", "events": told["events"]}
    agent_status.show(journal)
    assert "\n  preparation failed, first seen" in capsys.readouterr().out


def test_the_status_has_the_reason_why_an_event_is_not_approved() -> None:
    state = agent_with(event())
    state.watcher = Watcher(informed=True, held='the config has approve = "never"')  # type: ignore[assignment]
    (shown,) = json.loads(state.pages()["/status"]().content)["events"]
    assert (shown["doing"], shown["not_approved"]) == ("prepared", 'the config has approve = "never"')
    assert shown["next"] == "let it start early with `forewarn guest approve A`"
    state.journal.tracked_events = replay([TakenUp(event=event(status="Pondered"), at=NOW)])
    (shown,) = json.loads(state.pages()["/status"]().content)["events"]
    assert shown["next"] is None


@pytest.mark.parametrize(
    ("agent", "handler", "more", "held"),
    [
        ("", "", (), 1),
        ("", 'on-failure = "continue"', (), 0),
        ('approve = "never"', "", (), 0),
        ("", "", (Approved(event="A", at=NOW),), 0),  # approved by a person in this machine
        ("", "", (Changed(event=started()),), 0),
        ("", "", (Left(event="A", at=NOW, why="it is over"),), 0),
    ],
)
def test_held_events_are_counted(agent: str, handler: str, more: Sequence[Entry], held: int) -> None:
    assert gauges(failed_with(agent, handler, *more))["held"] == held


def test_every_metric_of_the_sample_alerts_exists() -> None:
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    state = agent_with(silent_for=1.0)
    for what, labels in (("handlers", ("drain", "prepare", "never")), ("unreadable", ("event",))):
        state.metrics.count(what, *labels)
    text = state.pages()["/metrics"]().content.decode()
    known = set(re.findall(r"^(forewarn_agent_\w+)", text, re.MULTILINE))
    for rule in rules:
        named = set(re.findall(r"forewarn_agent_\w+", rule["expr"]))
        assert named, rule
        assert named <= known, rule
        assert {"summary", "description"} == rule["annotations"].keys(), rule
        for label in re.findall(r"(\w+)=\"", rule["expr"]):
            assert f'{label}="' in text, rule
    assert any("forewarn_agent_held" in rule["expr"] for rule in rules)
