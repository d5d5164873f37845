"""The fleet of the fixture `forewarn`, over real sockets."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from forewarn.core.errors import Invalid
from forewarn.testing import Conflict, Fleet, Machine
from forewarn.testing.fleet import opened_fleet
from tests.helpers.service.racing import at_once

PATH = "/metadata/scheduledevents?api-version=2020-07-01"


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with opened_fleet() as opened:
        yield opened


def poll(machine: Machine, *, timeout: float = 10.0, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False, verify=False, timeout=timeout) as client:
        return client.get(machine.endpoint + PATH, headers={"Metadata": "true", **headers})


def events_of(machine: Machine) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = poll(machine).json()["Events"]
    return events


def approve(machine: Machine, event: str) -> None:
    body = {"StartRequests": [{"EventId": event}]}
    with httpx.Client(trust_env=False, verify=False, timeout=10) as client:
        client.post(machine.endpoint + PATH, json=body, headers={"Metadata": "true"}).raise_for_status()


# Orders


@pytest.mark.parametrize(
    ("action", "type_", "notice", "afterwards"),
    [
        ("restart", "Reboot", 15, "running"),
        ("redeploy", "Redeploy", 10, "running"),
        ("freeze", "Freeze", 15, "running"),
        ("evict", "Preempt", 0.5, "stopped"),
        ("terminate", "Terminate", 5, "gone"),
    ],
)
def test_each_order_on_a_machine_is_announced_and_carried_out(
    fleet: Fleet, action: str, type_: str, notice: float, afterwards: str
) -> None:
    vm = fleet.machine("web-0", priority="spot")

    event = getattr(vm, action)()

    (seen,) = events_of(vm)
    assert (seen["EventId"], seen["EventType"], seen["EventStatus"]) == (event.id, type_, "Scheduled")
    assert (event.type, event.status, event.resources) == (type_, "Scheduled", ["web-0"])
    assert event.not_before - fleet.now == timedelta(minutes=notice)
    fleet.advance(minutes=notice)
    assert event.status == "Started"
    fleet.advance(minutes=15)
    assert (event.status, event.order.state, vm.state) == ("Over", "done", afterwards)
    assert fleet.events == []


def test_the_approval_of_a_guest_starts_an_event(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    event = vm.restart()
    before = fleet.now

    approve(vm, event.id)

    assert (event.approved, event.approved_by, event.status) == (True, ["web-0"], "Started")
    assert fleet.now == before


def test_a_test_may_approve_and_cancel(fleet: Fleet) -> None:
    first, second = fleet.machine("web-0").restart(), fleet.machine("web-1").restart()
    first.approve()
    second.cancel()
    assert (first.status, first.approved_by) == ("Started", ["test"])
    assert (second.status, second.order.state) == ("Over", "cancelled")
    assert "cancelled" in second.why
    assert events_of(fleet.machine("web-1")) == []


def test_a_machine_that_never_polls_is_notified_even_after_days(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    fleet.advance(days=3)
    assert vm.restart().status == "Scheduled"


def test_the_clock_is_never_turned_back(fleet: Fleet) -> None:
    with pytest.raises(Invalid, match="the clock cannot go back, got -900 s"):
        fleet.advance(minutes=-15)


def test_an_evicted_machine_can_be_started_again(fleet: Fleet) -> None:
    vm = fleet.machine("spot-0", priority="spot")
    vm.evict().approve()
    fleet.advance(minutes=5)
    assert vm.state == "stopped"
    vm.start()
    fleet.advance(minutes=5)
    assert vm.state == "running"


def test_a_refused_action_has_a_reason(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    with pytest.raises(Conflict, match="only spot machines are evicted"):
        vm.evict()
    vm.restart()
    with pytest.raises(Conflict, match="has order"):
        vm.restart()


# Groups, update domains, hosts


def test_machines_of_a_group_see_the_same_document(fleet: Fleet) -> None:
    first = fleet.machine("web-0", group="web")
    second = fleet.machine("web-1", group="web", update_domain=1)
    alone = fleet.machine("db")

    event = second.restart()

    assert [each["EventId"] for each in events_of(first)] == [event.id]
    assert events_of(alone) == []
    approve(first, event.id)
    assert event.approved_by == ["web-0"]


def test_maintenance_of_a_host_takes_update_domains_in_turn(fleet: Fleet) -> None:
    fleet.machine("web-0", group="web")
    second = fleet.machine("web-1", group="web", update_domain=1)
    first = fleet.host("host-1").maintenance("freeze")

    waiting = fleet.host("host-2").maintenance("freeze")

    (event,) = first.events
    assert (event.type, event.resources, event.duration) == ("Freeze", ["web-0"], timedelta(seconds=9))
    assert (waiting.state, waiting.events) == ("queued", [])
    assert waiting.waiting == ["web: update domain 1 waits for domain 0"]
    event.approve()
    fleet.advance(minutes=5)
    (after,) = waiting.events
    assert (first.state, after.status, after.resources) == ("done", "Scheduled", [second.name])
    waiting.cancel()
    assert after.status == "Over"


def test_machines_of_a_failed_host_restart_elsewhere_without_notice(fleet: Fleet) -> None:
    vm, host = fleet.machine("web-0", host="rack-7"), fleet.host("rack-7")
    assert (host.machines, vm.host) == (["web-0"], "rack-7")

    (event,) = host.fail().events

    assert (event.status, event.type, host.state) == ("Started", "Reboot", "failed")
    fleet.advance(minutes=30)
    assert (vm.state, vm.host, host.machines) == ("running", "host-1", [])
    host.restore()
    assert host.state == "ok"


def test_a_degraded_host_gives_days_of_notice(fleet: Fleet) -> None:
    fleet.machine("web-0")
    (event,) = fleet.host("host-1").degrade().events
    assert event.type == "Redeploy"
    assert event.not_before - fleet.now > timedelta(days=1)


def test_a_scale_set_may_need_the_approval_of_all_machines(fleet: Fleet) -> None:
    fleet.group("web", kind="scale-set", policy={"approval": "all"})
    one, two = (fleet.machine(f"web-{n}", group="web", host="host-1") for n in range(2))
    (event,) = fleet.host("host-1").maintenance("reboot").events
    approve(one, event.id)
    assert not event.approved
    approve(two, event.id)
    assert event.approved


def test_a_machine_is_created_once(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    assert fleet.machine("web-0") is vm
    with pytest.raises(ValueError, match="set its group in the first call"):
        fleet.machine("web-0", group="web")


# Faults


@pytest.mark.parametrize("status", ["429", "500", "503"])
def test_an_error_fault_affects_a_limited_number_of_calls(fleet: Fleet, status: Any) -> None:
    vm, other = fleet.machine("web-0"), fleet.machine("web-1")
    with vm.fault(status, calls=2):
        assert [poll(vm).status_code for _ in range(3)] == [int(status), int(status), 200]
        assert poll(other).status_code == 200
    assert (vm.polls, vm.spoiled) == (3, 2)


def test_a_fault_of_the_fleet_affects_all_machines_until_lifted(fleet: Fleet) -> None:
    vm, fault = fleet.machine("web-0"), fleet.fault("503")
    later = fleet.machine("web-1")
    assert [poll(each).status_code for each in (vm, later)] == [503, 503]
    fault.lift()
    fault.lift()
    assert [poll(each).status_code for each in (vm, later)] == [200, 200]


def test_an_answer_may_be_empty_or_plain_text(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    with vm.fault("empty"):
        assert (poll(vm).status_code, poll(vm).content) == (200, b"")
    with vm.fault("text"):
        assert poll(vm).headers["content-type"] == "text/plain"
        assert poll(vm).json()["Events"] == []


def test_an_event_may_vanish_and_come_back(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    event = vm.restart()
    with vm.fault("vanished"):
        assert events_of(vm) == []
    assert [each["EventId"] for each in events_of(vm)] == [event.id]


def test_an_event_may_begin_as_started(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    vm.fault("born-started")
    vm.restart()
    assert events_of(vm) == []
    fleet.advance(minutes=15)
    assert [each["EventStatus"] for each in events_of(vm)] == ["Started"]


def test_a_notice_may_be_shorter_than_promised(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    vm.fault("short-notice", notice=timedelta(minutes=1))
    vm.restart()
    fleet.advance(minutes=13)
    assert events_of(vm) == []
    fleet.advance(minutes=1)
    assert [each["EventStatus"] for each in events_of(vm)] == ["Scheduled"]


def test_the_incarnation_restarts_with_each_fault(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    for _ in range(2):
        event = vm.restart()
        assert poll(vm).json()["DocumentIncarnation"] == 2
        with vm.fault("incarnation-restart"):
            assert poll(vm).json()["DocumentIncarnation"] == 1
        event.cancel()
        assert poll(vm).json()["DocumentIncarnation"] == 2
        vm.fault("incarnation-restart", calls=1)
        assert poll(vm).json()["DocumentIncarnation"] == 1


def test_a_hanging_endpoint_answers_once_the_fault_is_lifted(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    with vm.fault("hang"), pytest.raises(httpx.ReadTimeout):
        poll(vm, timeout=0.2)
    assert poll(vm).status_code == 200


def test_a_slow_answer_arrives_when_the_clock_advances(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    vm.fault("slow")
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(poll, vm)
        wait_for_polls(vm, 1)
        fleet.advance(seconds=119)
        assert not answer.done()
        fleet.advance(seconds=1)
        assert answer.result(10).status_code == 200


def test_a_slow_answer_arrives_when_the_fault_is_lifted(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    with ThreadPoolExecutor() as pool:
        with vm.fault("slow", delay=timedelta(hours=1)):
            answer = pool.submit(poll, vm)
            wait_for_polls(vm, 1)
        assert answer.result(10).status_code == 200


def test_a_held_request_meets_later_faults(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    tag = poll(vm).headers["etag"]
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(poll, vm, **{"Prefer": "wait=60", "If-None-Match": tag})
        wait_for_polls(vm, 2)
        assert not answer.done()
        with vm.fault("500"):
            assert answer.result(10).status_code == 500


def test_an_order_answers_a_held_request(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    tag = poll(vm).headers["etag"]
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(poll, vm, **{"Prefer": "wait=60", "If-None-Match": tag})
        wait_for_polls(vm, 2)
        vm.restart()
        assert len(answer.result(10).json()["Events"]) == 1


def test_threads_may_inject_and_lift_faults_concurrently(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    put = at_once([partial(vm.fault, "500")] * 8)
    assert poll(vm).status_code == 500
    at_once([each.lift for each in put[1:]])
    assert poll(vm).status_code == 500
    put[0].lift()
    assert poll(vm).status_code == 200


@pytest.mark.parametrize(
    ("fault", "more", "message"),
    [
        ("404", {}, "expected one of slow, hang, 429"),
        ("500", {"calls": 0}, "expected 1 or more"),
        ("500", {"delay": timedelta(seconds=1)}, "only for a fault slow"),
        ("hang", {"notice": timedelta(seconds=1)}, "only for a fault short-notice"),
    ],
)
def test_an_invalid_fault_is_refused(fleet: Fleet, fault: Any, more: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fleet.fault(fault, **more)


# Waiting for guests, and stopping


def test_a_timeout_reports_what_the_guest_did(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    event = vm.restart()
    with pytest.raises(TimeoutError, match="web-0 has never polled"):
        event.wait_for_approval(timeout=0)
    with vm.fault("429"):
        poll(vm)
    with pytest.raises(
        TimeoutError, match=r"polled once \(1 spoiled by a fault\) and did not receive the event"
    ):
        event.wait_for_approval(timeout=0)
    poll(vm)
    with pytest.raises(TimeoutError, match="received the event"):
        event.wait_for_approval(timeout=0)


def test_the_log_lists_the_actions_of_test_and_guest(fleet: Fleet) -> None:
    vm = fleet.machine("web-0")
    event = vm.restart()
    events_of(vm)
    fleet.advance(minutes=2)
    approve(vm, event.id)
    assert [line.split("  ")[-1] for line in fleet.log] == [
        "test: orders restart of web-0",
        "web-0: polls for the first time",
        f"web-0: sees Reboot of web-0 (Scheduled, event {event.id[:8]})",
        "test: has advanced the clock by 0:02:00",
        f"web-0: approves event {event.id[:8]}",
    ]
    assert fleet.log[-1].startswith("  2 m 00 s")


def test_two_fleets_are_independent() -> None:
    with opened_fleet() as one, opened_fleet() as other:
        first, second = one.machine("web-0"), other.machine("web-0")
        first.restart()
        one.advance(minutes=5)
        assert (len(events_of(first)), events_of(second)) == (1, [])
        assert one.now - other.now > timedelta(minutes=4)


def test_a_stopped_fleet_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    with opened_fleet() as fleet, ThreadPoolExecutor() as pool:
        vm = fleet.machine("web-0")
        with fleet.fault("hang"):
            pass
        tag = poll(vm).headers["etag"]
        pool.submit(poll, vm, **{"Prefer": "wait=60", "If-None-Match": tag})
        wait_for_polls(vm, 2)
        fleet.fault("503")
    assert set(threading.enumerate()) <= before
    with pytest.raises(httpx.ConnectError):
        poll(vm)


def wait_for_polls(machine: Machine, count: int) -> None:
    """Wait until its guest has polled this many times."""
    pause = threading.Event()
    while machine.polls < count:
        pause.wait(0.01)
