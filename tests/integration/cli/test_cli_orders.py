"""`order show` on past events and on work whose driver cannot report progress."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from forewarn.cli import terminal
from forewarn.cli.formatting import utc
from forewarn.cli.main import app
from forewarn.control.driver import Done, Unknown
from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import Action
from forewarn.core.model.declaration import FleetDefaults
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.scripted_driver import SCRIPTED, ScriptedDriver, make_calls
from tests.helpers.service.served import app_of, serving


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture
def service(tmp_path: Path, driver: ScriptedDriver) -> Iterator[Service]:
    """One machine, with a driver that returns the results the test sets."""
    service = Service(sqlite_url(tmp_path))
    service.more_drivers[SCRIPTED] = driver
    service.wire(service.store)
    service.apply(replace(fleet(machine("web-0", "host-1")), defaults=FleetDefaults(driver=SCRIPTED)))
    service.poll("web-0")
    service.advance(minutes=5)
    yield service
    service.close()


@pytest.fixture
def server(service: Service) -> Iterator[str]:
    with serving(app_of(service)) as url:
        yield url


def restarted(service: Service, driver: ScriptedDriver) -> Placed:
    """Restart the machine immediately, and wait for the call of its driver."""
    placed = service.order("web-0", Action.RESTART)
    service.approve("web-0", *placed.events)
    make_calls(service, driver)
    return placed


def shown(url: str, placed: Placed) -> str:
    result = CliRunner().invoke(app, ["order", "show", placed.order.id, "--server", url])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_past_event_is_shown_as_over_with_its_end(
    service: Service, driver: ScriptedDriver, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.begins = [Done()]
    placed = restarted(service, driver)
    service.advance(minutes=2)
    (event,) = placed.events
    ended = service.reload(placed).ended_at
    assert ended is not None
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    (row,) = (line for line in shown(server, placed).splitlines() if line.startswith(event.id[:8]))
    assert "Started" not in row
    assert (" over " in row, utc(ended) in row) == (True, True)


def test_unknown_progress_offers_to_abandon_the_order(
    service: Service, driver: ScriptedDriver, server: str
) -> None:
    driver.begins = [Unknown("no route to host-1")]
    placed = restarted(service, driver)
    said = shown(server, placed)
    assert "running, progress unknown" in said
    assert re.search(rf"Abandon:  forewarn .*order abandon {placed.order.id}\n", said)
    assert "order retry" not in said


def test_an_order_being_abandoned_does_not_offer_it_again(
    service: Service, driver: ScriptedDriver, server: str
) -> None:
    driver.begins = [Unknown("no route to host-1")]
    placed = restarted(service, driver)
    abandoned = CliRunner().invoke(app, ["order", "abandon", placed.order.id, "--server", server])
    assert abandoned.exit_code == 0
    assert "Abandon it" not in shown(server, placed)


def test_normal_work_offers_no_command(service: Service, driver: ScriptedDriver, server: str) -> None:
    assert "Abandon it" not in shown(server, restarted(service, driver))
