"""The server log: one line per change, and changes by callers also to syslog."""

import json
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from forewarn.api.audit import AUDIT, audit
from forewarn.config import LogSettings, Settings
from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import Action, Kind, Work
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.record import Record
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.server import local_tokens
from forewarn.server.log_setup import level_of, log_records, set_up_audit, set_up_log
from forewarn.store.batch import Transaction
from forewarn.store.saved import records_of
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.programs.process import PATIENCE
from tests.helpers.service.harness import TEST, Service
from tests.helpers.service.served import sample


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Restore the logging of the tests."""
    loggers = (logging.getLogger(), AUDIT)
    before = [(each, list(each.handlers), each.level, each.propagate) for each in loggers]
    yield
    for handler in AUDIT.handlers:
        handler.close()
    for each, handlers, level, propagate in before:
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    yield service
    service.close()


def logged(**settings: str) -> None:
    set_up_log(Settings(log=LogSettings(**settings)))  # type: ignore[arg-type]


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


# Changes in the log


def do_much(service: Service) -> None:
    service.apply(sample())
    service.poll("web-0")
    service.tokens.create(Grant(name="olga", role=Role.OPERATOR), by="test")
    service.order("web-0", Action.RESTART)
    hold = service.fleet.hosts.hold(OrderRequest(by="olga", reason="holidays"), project=None, host=None)
    service.fleet.hosts.release(hold.id, by="olga")
    service.driver.failing.add("spot-0")
    service.order("spot-0", Action.EVICT)
    service.advance(minutes=30)
    service.roll("host-2", "host-3")
    service.advance(hours=3)
    service.tokens.revoke("olga", by="test")


def test_each_change_of_orders_events_rollouts_holds_and_tokens_is_one_line(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    logged(format="json")
    service.store.saved = log_records
    do_much(service)
    said = lines(capsys)
    families = ("order", "event", "rollout", "hold", "token")
    expected = [each for each in service.history() if each.kind.partition("-")[0] in families]
    found = [each for each in said if str(each["message"]).partition("-")[0] in families]
    assert [(each["number"], each["message"]) for each in found] == [
        (each.number, each.kind) for each in expected
    ]
    assert {each.kind.partition("-")[0] for each in expected} == set(families)
    failed = next(each for each in said if each["message"] == "order-failed")
    assert failed["level"] == "warning"
    assert failed["machine"] == "spot-0"
    assert not any(each["message"] in ("step-done", "machine-added") for each in said)


def test_the_level_limits_what_is_logged(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    service.store.saved = log_records
    logged(format="json", level="debug")
    do_much(service)
    records = len(service.history())
    assert len(lines(capsys)) == records
    logged(format="json", level="error")
    service.order("web-1", Action.RESTART)
    assert lines(capsys) == []


def test_every_kind_has_a_level() -> None:
    grave = {kind for kind in Kind if level_of(kind) == logging.WARNING}
    assert {Kind.ORDER_FAILED, Kind.PROMISE_BROKEN} <= grave
    assert level_of(Kind.STEP_BEGUN) == logging.DEBUG
    assert level_of("what-came-later") == logging.INFO


def test_rolled_back_changes_are_not_logged_and_nested_ones_only_with_the_commit(service: Service) -> None:
    service.apply(sample())
    told: list[Record] = []
    service.store.saved = lambda saved: told.extend(records_of(saved))

    hosts = service.use_cases.hosts

    def maintained_twice(tx: Transaction) -> None:
        for _ in range(2):
            hosts.order_host(tx, "host-1", Action.MAINTENANCE, TEST, work=Work.FREEZE)

    with pytest.raises(Conflict):
        service.transact(maintained_twice)
    assert told == []
    with writing(service.store) as tx:
        hosts.order_host(tx, "host-1", Action.CORDON, TEST)
        assert told == []
    assert [each.kind for each in told] == ["order-placed", "host-changed", "order-done"]


# Changes, to syslog


@pytest.fixture
def ear() -> Iterator[socket.socket]:
    """Listen like syslog, on a path short enough for a socket."""
    with TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(os.path.join(folder, "log"))
        ear.settimeout(PATIENCE)
        yield ear


def change(who: str = "olga") -> None:
    audit(who=who, where="10.0.0.1", what="POST /v1/holds", result="done", status=201, project=None)


# Facility auth, severity info.
HEARD = b'<38>forewarn: audit who=olga from=10.0.0.1 what="POST /v1/holds" result=done status=201\0'


def test_changes_are_logged_and_sent_to_syslog_at_every_level(
    ear: socket.socket, capsys: pytest.CaptureFixture[str]
) -> None:
    logged(level="error", syslog=ear.getsockname())
    change()
    assert ear.recv(4096) == HEARD
    assert 'audit who=olga from=10.0.0.1 what="POST /v1/holds"' in capsys.readouterr().err
    logged(format="json", syslog=ear.getsockname())
    change()
    assert json.loads(ear.recv(4096).removeprefix(b"<38>forewarn: ").rstrip(b"\0"))["who"] == "olga"


def test_syslog_may_be_on_another_machine() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("127.0.0.1", 0))
        ear.settimeout(PATIENCE)
        logged(syslog=f"127.0.0.1:{ear.getsockname()[1]}")
        change()
        assert ear.recv(4096) == HEARD


def test_a_blocked_syslog_delays_no_caller_and_is_logged_once(
    ear: socket.socket, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ear.getsockname()
    logged(syslog=path)
    for _ in range(5000):  # more than its queue holds
        change()
    assert capsys.readouterr().err.count("warning: syslog does not accept audit lines") == 1
    ear.close()
    os.remove(path)
    change()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again:
        again.bind(path)
        again.settimeout(PATIENCE)
        change()
        assert again.recv(4096) == HEARD


def test_an_invalid_address_is_refused_and_changes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logged()
    for wrong in ("127.0.0.1:log", "no such host.invalid:514"):
        with pytest.raises(Invalid, match=r"\[log\] syslog: "):
            logged(format="json", syslog=wrong)
    change()
    assert capsys.readouterr().err.count(" audit who=olga") == 1


def test_a_change_on_the_store_itself_is_sent_to_syslog_alone(
    ear: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREWARN_LOG_SYSLOG", ear.getsockname())
    url = sqlite_url(tmp_path)
    local_tokens.create(url, Grant(name="olga", role=Role.OPERATOR), say=lambda _: None)
    heard = ear.recv(4096).decode()
    assert 'from="the store" what="token create olga (operator)" result=done' in heard
    with pytest.raises(Conflict):
        local_tokens.create(url, Grant(name="olga", role=Role.OPERATOR), say=lambda _: None)
    assert "result=refused" in ear.recv(4096).decode()
    assert capsys.readouterr().err == ""


def test_without_syslog_a_change_on_the_store_is_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_audit(Settings())
    change()
    assert capsys.readouterr().err == ""
