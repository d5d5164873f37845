"""`forewarn gate host`: the command runs once for all machines on the host, or the gate refuses."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.cli.gate import order_gate
from forewarn.cli.main import app as main
from forewarn.core.basic_types import EXTERNAL, Action, HostName, HostState, Kind, OrderState, Work
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.redaction import unmarked
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import app_of, serving

# An emergency does not wait for guests.
AT_ONCE = ("--action", "reboot", "--emergency", "coolant leak")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Two update domains of web on host-1, one on host-2, no machine on host-3."""
    service = Service(sqlite_url(tmp_path))
    service.apply(
        fleet(
            group("web"),
            machine("web-0", "host-1", group="web", domain=0),
            machine("web-1", "host-1", group="web", domain=1),
            machine("db", "host-1"),
            machine("web-2", "host-2", group="web", domain=2),
            machine("web-3", "host-2", group="web", domain=2),
            hosts=3,
        )
    )
    yield service
    service.close()


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file to which the command appends a line in each run."""
    monkeypatch.setattr(order_gate, "LOOK_SECONDS", 0.02)
    path = tmp_path / "ran"
    path.touch()
    return path


def gate(
    service: Service, ran: Path, *words: str, code: int = 0, app: ASGIApp | None = None, noun: str = "gate"
) -> Result:
    """Run the gate with a command that writes the host and its machines to a file."""
    note = f'echo "$FOREWARN_HOST $FOREWARN_MACHINES" >> {ran}; exit {code}'
    with serving(app or app_of(service)) as url:
        return CliRunner().invoke(main, ["--server", url, noun, *words, "--", "sh", "-c", note])


def test_the_command_runs_once_for_all_machines_of_the_host(service: Service, ran: Path) -> None:
    gated = gate(service, ran, "host", "host-2", *AT_ONCE)
    assert gated.exit_code == 0, gated.output
    assert ran.read_text() == "host-2 web-2,web-3\n"


def test_a_host_with_two_update_domains_of_a_group_is_refused_with_the_choices(
    service: Service, ran: Path
) -> None:
    gated = gate(service, ran, "host", "host-1", *AT_ONCE)
    assert gated.exit_code == 1
    assert "host-1 carries update domains 0 and 1 of group web" in gated.stderr
    assert "--one-by-one" in gated.stderr
    assert "--together REASON" in gated.stderr
    assert not service.everything().orders
    assert ran.read_text() == ""


def test_with_together_the_command_runs_once_and_the_broken_promise_is_recorded(
    service: Service, ran: Path
) -> None:
    gated = gate(service, ran, "host", "host-1", *AT_ONCE, "--together", "its board is swapped")
    assert gated.exit_code == 0, gated.output
    assert ran.read_text() == "host-1 db,web-0,web-1\n"
    why = "its board is swapped: update domains 0 and 1 of web are disturbed together"
    broken = [record for record in service.history() if record.kind == Kind.PROMISE_BROKEN]
    assert [record.group for record in broken if unmarked(record.reason) == why] == ["web", "web"]
    assert f"Broken promise, recorded in the history: {why}" in gated.stdout


def test_together_and_one_by_one_exclude_each_other(service: Service, ran: Path) -> None:
    gated = gate(service, ran, "host", "host-1", *AT_ONCE, "--one-by-one", "--together", "why not")
    assert gated.exit_code == 2
    assert "choose one of them" in gated.stderr


def test_the_command_runs_for_an_empty_host(service: Service, ran: Path) -> None:
    gated = gate(service, ran, "host", "host-3", *AT_ONCE, code=7)
    assert gated.exit_code == 7
    assert ran.read_text() == "host-3 \n"
    assert "Work may start on host-3" in gated.stdout
    (order,) = service.everything().orders.values()
    assert (order.state, order.action) == (OrderState.FAILED, Action.SERVICE)
    assert f"gate order {order.id}" in gated.stderr


def test_failed_work_on_an_empty_host_is_resumed(service: Service, ran: Path) -> None:
    gate(service, ran, "host", "host-3", *AT_ONCE, code=7)
    (order,) = service.everything().orders
    assert gate(service, ran, "order", order).exit_code == 0
    assert ran.read_text() == "host-3 \nhost-3 \n"
    assert not service.everything().orders


def test_the_command_services_a_host_whose_machines_restart_with_it(service: Service, ran: Path) -> None:
    words = ("service", "host-2", "--in-place", "--emergency", "coolant leak", "--yes")
    served = gate(service, ran, *words, noun="host")
    assert served.exit_code == 0, served.output
    assert ran.read_text() == "host-2 web-2,web-3\n"
    done = [record for record in service.history() if record.kind == Kind.STEP_DONE]
    assert [record.machine for record in done] == [None, "web-2", "web-3"]


def test_the_command_services_an_empty_host(service: Service, ran: Path) -> None:
    assert gate(service, ran, "service", "host-3", noun="host").exit_code == 0
    assert ran.read_text() == "host-3 \n"
    assert not service.everything().orders


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--evacuate", "--in-place"), "choose one of them"),
        (("--in-place", "--return"), "moves no machine"),
        (("--host-work", "simulated"), "the command after -- does this work"),
    ],
)
def test_contradictory_host_service_is_refused(
    service: Service, ran: Path, words: tuple[str, ...], why: str
) -> None:
    refused = gate(service, ran, "service", "host-3", *words, noun="host")
    assert (refused.exit_code, ran.read_text()) == (2, "")
    assert why in refused.stderr


def test_work_on_an_empty_host_is_a_service_order(service: Service, ran: Path) -> None:
    assert gate(service, ran, "host", "host-3", *AT_ONCE).exit_code == 0
    placed = [record for record in service.history() if record.kind == Kind.ORDER_PLACED]
    assert [re.split("[ ,:]", record.reason)[0] for record in placed] == ["service"]
    assert service.everything().hosts[HostName("host-3")].state is HostState.OK


def test_an_empty_host_stays_cordoned(service: Service, ran: Path) -> None:
    service.host_order("host-3", Action.CORDON)
    assert gate(service, ran, "host", "host-3", *AT_ONCE).exit_code == 0
    assert service.everything().hosts[HostName("host-3")].state is HostState.CORDONED


def placed(service: Service, host: str) -> str:
    """Place an emergency order with the driver external and several parts."""
    terms = OrderTerms(emergency="coolant leak")
    request = OrderRequest(by="test", driver=EXTERNAL, terms=terms)
    return service.fleet.hosts.order_host(host, Action.MAINTENANCE, request, work=Work.REBOOT).order.id


def test_an_order_with_several_parts_is_resumed_only_one_by_one(service: Service, ran: Path) -> None:
    refused = gate(service, ran, "order", placed(service, "host-1"), "--yes")
    assert refused.exit_code == 1
    assert "has 2 parts: use --one-by-one" in refused.stderr
    assert ran.read_text() == ""


def test_the_command_is_not_run_again_for_a_machine_that_joined_late(service: Service, ran: Path) -> None:
    order, app = placed(service, "host-2"), app_of(service)

    async def add_a_machine_after_the_report(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        if scope["path"].endswith("/complete"):
            service.put("late", host=HostName("host-2"), group="web", update_domain=1)
            service.advance(seconds=120)

    gated = gate(service, ran, "order", order, "--yes", app=add_a_machine_after_the_report)
    assert gated.exit_code == 1
    assert "late joined after the command had run" in gated.stderr
    assert ran.read_text() == "host-2 web-2,web-3\n"
