"""nova gets one request for each attempt, whichever process is killed and whatever a tenant writes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forewarn.control.driver import Cancelled, Done, Failed, NotBegun, Running, Unknown
from forewarn.core.basic_types import Work
from forewarn.drivers.openstack.attempts import ARRIVED_WITHIN
from forewarn.drivers.openstack.driver import OpenStackDriver
from tests.helpers.programs.process import until
from tests.openstack.driver_calls import LIBRARY_WARNINGS, SavedStep, made, task
from tests.openstack.real_nova import Nova
from tests.openstack.small_keystone import a_keystone

pytestmark = LIBRARY_WARNINGS


@pytest.fixture
def driver(nova: Nova, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenStackDriver:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", f"{nova.write_clouds(tmp_path)}")
    return made()


@pytest.fixture
def known_driver(nova: Nova, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenStackDriver]:
    """A driver with a keystone user."""
    with a_keystone(nova.url) as keystone:
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", f"{nova.write_clouds(tmp_path, keystone=keystone)}")
        yield made()


def done(step: SavedStep, driver: OpenStackDriver) -> None:
    until(lambda: isinstance(step.check(driver), Done), what="the end of the step")


# Requests


def test_nothing_is_sent_before_the_mark_is_saved(nova: Nova, driver: OpenStackDriver) -> None:
    web = nova.create("web")
    lost = driver.begin(task(web))
    assert isinstance(lost, Running)
    assert lost.mark
    assert (nova.actions(web), nova.server(web)["metadata"]) == ([], {})
    assert driver.check(task(web)) == NotBegun()  # the server was killed before it saved the mark
    step = SavedStep(task(web))
    step.begin(driver)
    done(step, driver)
    assert nova.actions(web) == ["reboot"]


def test_a_step_is_sent_once_however_often_it_is_checked(nova: Nova, driver: OpenStackDriver) -> None:
    step = SavedStep(task(nova.create("web"), Work.EVICT))
    step.begin(driver)
    done(step, driver)
    assert (step.check(made()), step.check(driver)) == (Done(), Done())


def test_another_process_waits_until_requests_must_have_arrived(nova: Nova, driver: OpenStackDriver) -> None:
    web, since = nova.create("web"), [0.0]
    other = made(monotonic=lambda: since[0])
    step = SavedStep(task(web))
    step.begin(driver)
    assert isinstance(step.check(other), Running)
    since[0] = ARRIVED_WITHIN - 1
    assert isinstance(step.check(other), Running)
    assert nova.actions(web) == []
    since[0] = ARRIVED_WITHIN
    old = step.task
    assert isinstance(step.check(other), Running)  # with a new token, which must be saved
    assert (step.task.mark != old.mark, nova.actions(web)) == (True, [])
    done(step, other)
    assert nova.actions(web) == ["reboot"]


def test_a_request_of_an_earlier_process_is_not_sent_again(nova: Nova, driver: OpenStackDriver) -> None:
    web, since = nova.create("web"), [0.0]
    other = made(monotonic=lambda: since[0])
    nova.behave(reboot=3)
    step = SavedStep(task(web))
    step.begin(driver)
    step.check(driver)
    step.check(other)
    since[0] = 2 * ARRIVED_WITHIN
    done(step, other)
    assert nova.actions(web) == ["reboot"]


def test_a_request_without_an_answer_is_not_repeated_at_once(nova: Nova, driver: OpenStackDriver) -> None:
    web, since = nova.create("web"), [0.0]
    impatient = made(monotonic=lambda: since[0], **{"answer-for": "1s"})
    step = SavedStep(task(web))
    step.begin(impatient)
    nova.behave(hold={"method": "POST", "text": '"reboot"'}, performs=False)
    assert isinstance(step.check(impatient), Unknown)
    assert isinstance(step.check(impatient), Running)
    assert nova.actions(web) == []
    since[0] = ARRIVED_WITHIN
    done(step, impatient)
    assert nova.actions(web) == ["reboot"]


# Attempts


def test_an_older_attempt_is_refused(nova: Nova, driver: OpenStackDriver) -> None:
    web = nova.create("web")
    step = SavedStep(task(web, attempt=2))
    assert isinstance(step.begin(driver), Running)
    late = Failed("attempt 1 is outdated: attempt 2 of the step has begun")
    assert (driver.begin(task(web)), driver.check(task(web))) == (late, late)


def test_a_step_that_is_cancelled_before_its_request_is_never_sent(
    nova: Nova, driver: OpenStackDriver
) -> None:
    web = nova.create("web")
    step = SavedStep(task(web))
    step.begin(driver)
    assert step.cancel(driver) == Cancelled()
    off = Failed("the attempt was cancelled")
    assert (step.check(driver), step.begin(driver)) == (off, off)
    again = SavedStep(task(web, attempt=2))
    again.begin(driver)
    done(again, driver)
    assert nova.actions(web) == ["reboot"]


def test_a_step_with_a_request_in_transit_is_not_cancelled(nova: Nova, driver: OpenStackDriver) -> None:
    web, since = nova.create("web"), [0.0]
    other = made(monotonic=lambda: since[0])
    step = SavedStep(task(web))
    step.begin(driver)
    assert isinstance(step.cancel(other), Unknown)
    since[0] = ARRIVED_WITHIN
    assert step.cancel(other) == Cancelled()
    assert nova.actions(web) == []


# Tenants

FORGED: dict[str, Callable[[str], str]] = {
    "a copy": lambda note: note,
    "done long ago": lambda note: note.replace("after=", "after=req-").replace("migration=0", ""),
    "a later attempt": lambda note: note.replace("attempt=1", "attempt=99"),
    "called off": lambda note: f"{note} called-off=yes",
    "an evacuation": lambda note: note.replace("how=reboot", "how=evacuation"),
    "a token": lambda note: f"{note} token=0000000000000000",
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_mark_from_a_tenant_is_ignored(nova: Nova, driver: OpenStackDriver, forged: str) -> None:
    web = nova.create("web")
    step = SavedStep(task(web))
    note = "order=O attempt=1 how=reboot at=2026-11-16T12:00:00+00:00 after=x migration=0"
    nova.write(web, "forewarn:step", FORGED[forged](note))
    step.begin(driver)
    nova.write(web, "forewarn:step", FORGED[forged](step.task.mark))
    step.check(driver)
    nova.write(web, "forewarn:step", FORGED[forged](step.task.mark))
    done(step, driver)
    assert nova.actions(web) == ["reboot"]
    assert not nova.service("compute1")["forced_down"]


def test_actions_of_a_tenant_do_not_count_as_the_work(nova: Nova, known_driver: OpenStackDriver) -> None:
    web = nova.create("web")
    step = SavedStep(task(web))
    step.begin(known_driver)
    nova.act(web, {"reboot": {"type": "SOFT"}}, user="tenant")
    until(lambda: nova.server(web)["OS-EXT-STS:task_state"] is None, what="the tenant's reboot")
    done(step, known_driver)
    assert nova.actions(web) == ["reboot", "reboot"]


# Missing servers


@pytest.mark.parametrize("work", [Work.TERMINATE, Work.REBOOT, Work.EVICT])
def test_a_machine_with_a_wrong_id_fails_for_every_work(driver: OpenStackDriver, work: Work) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    answer = driver.begin(task(nobody, work))
    assert isinstance(answer, Failed)
    assert f"nova has no server {nobody}: a machine's vm-id must be the id of its server" in answer.why
    assert driver.check(task(nobody, work)) == NotBegun()


def test_a_deleted_server_is_done(nova: Nova, driver: OpenStackDriver) -> None:
    web, deleting = nova.create("web"), made(destroy=True)
    step = SavedStep(task(web, Work.TERMINATE))
    step.begin(deleting)
    done(step, deleting)
    until(lambda: not nova.exists(web), what="what nova shows of a deleted server to be gone")
    assert step.check(made(destroy=True)) == Done()
