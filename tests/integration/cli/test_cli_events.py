"""`forewarn event` and `order` name the machines they wait for and the machine that deferred an event."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forewarn.cli.main import app
from forewarn.core.basic_types import Action, ApprovalRule, Priority, Work
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.event import Event
from forewarn.core.model.group import GroupPolicy
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import app_of, serving


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path), preview=True)
    with serving(app_of(service)) as url:
        monkeypatch.setenv("FOREWARN_SERVER", url)
        yield service
    service.close()


def told(service: Service, **policy: Any) -> Event:
    """Announce maintenance of a host with two machines of a group that has this policy."""
    service.apply(
        fleet(
            replace(group("web"), policy=GroupPolicy(**policy)),
            machine("web-0", "host-1", group="web"),
            machine("web-3", "host-1", group="web"),
        )
    )
    (event,) = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    return event


def output_of(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def shown_event(event: Event) -> dict[str, Any]:
    return dict(json.loads(output_of("event", "show", event.id, "--json"))["event"])


@pytest.mark.parametrize("driver", ["simulated", "external"])
def test_a_recommendation_has_no_driver_and_needs_no_approval(service: Service, driver: str) -> None:
    declared = fleet(machine("spot", "host-1", priority=Priority.SPOT))
    service.apply(replace(declared, defaults=FleetDefaults(driver=driver)))
    ordered = output_of("machine", "recommend-rebalance", "spot")
    until = "announced to spot: SpotRebalanceRecommendation, until 2026-01-05 12:30:00 UTC."
    assert until in " ".join(ordered.split())
    (event,) = service.everything().events.values()
    shown = (
        ordered + output_of("order", "list") + output_of("order", "show", event.order) + output_of("history")
    )
    shown += output_of("event", "list") + output_of("event", "show", event.id)
    for word in ("imulated", "external program", "event approve"):
        assert word not in shown
    assert "it needs no approval" in output_of("event", "approve", event.id)


def test_an_event_of_the_simulated_driver_is_marked(service: Service) -> None:
    event = told(service)
    assert "Freeze   Scheduled, simulated " in output_of("event", "list")
    mark = "Done by          simulated: nothing is really done\n"
    assert mark in output_of("event", "show", event.id)
    service.advance(hours=1)
    assert "Freeze   over, simulated " in output_of("event", "list", "--all")
    assert mark in output_of("event", "show", event.id)


def test_the_rule_all_names_the_machines_that_have_not_approved(service: Service) -> None:
    event = told(service, approval=ApprovalRule.ALL)
    service.approve("web-0", event)
    assert shown_event(event)["awaits"] == "web-3"
    assert "Approval         all; waiting for web-3\n" in output_of("event", "show", event.id)
    assert "web-0         web-3       Platform" in output_of("event", "list")
    waits = "not approved; awaits web-3; may start at "
    assert waits in output_of("order", "show", event.order)
    assert waits in output_of("order", "list")
    service.approve("web-3", event)
    assert shown_event(event)["awaits"] is None
    assert "Approval         all\n" in output_of("event", "show", event.id)


def test_the_rule_leader_says_that_other_approvals_do_not_count(service: Service) -> None:
    event = told(service, approval=ApprovalRule.LEADER)
    assert "leader; waiting for the leader web-0\n" in output_of("event", "show", event.id)
    service.approve("web-3", event)
    awaits = "the leader web-0; the approval of web-3 does not count"
    assert f"leader; waiting for {awaits}\n" in output_of("event", "show", event.id)
    assert f"not approved; awaits {awaits}; may start at" in output_of("order", "show", event.order)


def test_the_rule_any_names_no_machine(service: Service) -> None:
    event = told(service)
    assert "any; waiting for any of its machines\n" in output_of("event", "show", event.id)
    assert "not approved; may start at" in output_of("order", "show", event.order)


def test_an_approved_event_shows_its_reason_to_wait(service: Service) -> None:
    hour = GroupPolicy(notice=timedelta(hours=1))
    service.apply(
        fleet(
            replace(group("web"), policy=hour),
            machine("web-0", "host-1", group="web"),
            machine("web-1", "host-2", group="web", domain=1),
        )
    )
    (first,) = service.host_order("host-1", Action.MAINTENANCE, Work.REBOOT).events
    (second,) = service.host_order("host-2", Action.MAINTENANCE, Work.REBOOT).events
    service.approve("web-0", first)
    assert "\nwaits " not in output_of("event", "show", second.id)
    waits = "approved, waits for other machines of its group"
    assert f"Event {second.id} is {waits}.\n" in output_of("event", "approve", second.id)
    assert f"Waiting for      {waits}\n" in output_of("event", "show", second.id)


def test_a_deferred_event_shows_the_machine_the_request_and_the_grant(service: Service) -> None:
    event = told(service, defer=timedelta(minutes=10))
    assert shown_event(event)["deferred"] is None
    assert "deferred" not in output_of("event", "show", event.id)
    service.advance(minutes=1)
    service.fleet.guests.defer(service.machine("web-3").id, {event.id: 6000})
    assert shown_event(event)["deferred"] == {
        "by": "web-3",
        "at": "2026-01-05T12:01:00Z",
        "until": "2026-01-05T12:25:00Z",
        "asked_seconds": 6000,
        "granted_seconds": 600,
    }
    asked = (
        "web-3 at 2026-01-05 12:01:00 UTC, until 2026-01-05 12:25:00 UTC: asked for 1 h 40 m, granted 10 m"
    )
    assert f"Deferred by      {asked}\n" in output_of("event", "show", event.id)
    (record,) = [each for each in service.history() if each.kind == "event-deferred"]
    assert record.reason == "until 2026-01-05T12:25:00Z: 10 m later (1 h 40 m asked for)"


def test_an_event_that_moved_with_another_shows_the_reason(service: Service) -> None:
    service.apply(
        fleet(
            replace(group("web"), policy=GroupPolicy(defer=timedelta(minutes=10))),
            machine("web-0", "host-1", group="web"),
            machine("db", "host-1"),
        )
    )
    alone, event = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.fleet.guests.defer(service.machine("web-0").id, {event.id: 60})
    assert shown_event(alone)["deferred"] is None
    by = "Deferred with    another event by web-0 at 2026-01-05 12:00:00 UTC"
    assert f"{by}, until 2026-01-05T12:16:00Z: 1 m later\n" in output_of("event", "show", alone.id)
