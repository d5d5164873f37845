"""Hypervisors are listed to find machines of a rollout that stop after their work."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from forewarn.control.rollouts.host_listings import HostListings, MachineSightings
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.basic_types import Kind, MachineId, MachineState
from forewarn.core.errors import Unavailable
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.rollout import Rollout, RolloutState, RolloutTerms
from forewarn.server.threads.inventories import DriverInventories, MachineWatch
from forewarn.store.batch import Transaction
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.listing_driver import IDS, Hypervisor

T = TypeVar("T")
HEALTH = timedelta(minutes=10)
AFTER_THE_WORK = 16


@pytest.fixture
def hypervisor() -> Hypervisor:
    made = Hypervisor()
    made.domains = {"host-1": {IDS[0]: "web-0"}, "host-2": {IDS[1]: "web-1"}}
    return made


@pytest.fixture
def service(tmp_path: Path, hypervisor: Hypervisor) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.close()
    service.more_drivers["hyper"] = hypervisor
    service.open()
    machines = (
        machine(name, host, vm_id=MachineId(id_))
        for host, its in hypervisor.domains.items()
        for id_, name in its.items()
    )
    service.apply(replace(fleet(*machines, hosts=2), defaults=FleetDefaults(driver="hyper")))
    yield service
    service.close()


async def at_once(work: Callable[[], T], /) -> T:
    return work()


def look(service: Service) -> None:
    async def run(work: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        assert not isinstance(work, ExclusiveJob)
        return service.transact(work)

    watch = MachineWatch(
        DriverInventories(service.drivers),
        HostListings(service.context),
        MachineSightings(service.context),
        read=at_once,
        run=run,
    )
    asyncio.run(watch.look())
    service.tick()


def worked(service: Service, **terms: object) -> Rollout:
    """Begin a rollout, and finish the work on its first host."""
    rollout = service.roll("host-1", "host-2", terms=RolloutTerms(health=HEALTH, **terms))  # type: ignore[arg-type]
    service.advance(minutes=AFTER_THE_WORK)
    return rollout


def test_a_machine_that_stops_after_its_work_pauses_the_rollout(
    service: Service, hypervisor: Hypervisor
) -> None:
    rollout = worked(service)
    hypervisor.off.add(IDS[0])
    look(service)
    assert service.machine("web-0").state is MachineState.STOPPED
    service.advance(minutes=10)
    paused = service.rollout(rollout)
    assert paused.state is RolloutState.PAUSED
    assert paused.why == "web-0: is off, as its hypervisor says, 10 m after its work"


def test_a_machine_that_runs_again_in_time_is_well(service: Service, hypervisor: Hypervisor) -> None:
    rollout = worked(service)
    hypervisor.off.add(IDS[0])
    look(service)
    hypervisor.off.clear()
    look(service)
    assert service.machine("web-0").state is MachineState.RUNNING
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_machine_that_runs_leaves_no_record(service: Service) -> None:
    worked(service)
    before = len(service.history())
    look(service)
    assert len(service.history()) == before


def test_a_machine_missing_in_the_listing_is_unchanged(service: Service, hypervisor: Hypervisor) -> None:
    worked(service)
    hypervisor.domains = {"host-1": {}, "host-2": {IDS[0]: "web-0", IDS[1]: "web-1"}}
    look(service)
    assert service.machine("web-0").host == "host-1"  # host-2 was not listed
    assert Kind.MACHINE_REMOVED not in {record.kind for record in service.history()}


def test_hypervisors_are_not_called_while_no_rollout_waits(service: Service, hypervisor: Hypervisor) -> None:
    look(service)
    rollout = service.roll("host-1", "host-2", terms=RolloutTerms(health=HEALTH))
    look(service)
    service.advance(minutes=AFTER_THE_WORK)
    service.rollouts.pause(rollout.id, by="test")
    look(service)
    assert hypervisor.asked == []


def test_a_wave_is_watched_no_longer_than_its_machines_have_time(
    service: Service, hypervisor: Hypervisor
) -> None:
    worked(service)
    look(service)
    service.advance(hours=1)
    before = len(hypervisor.asked)
    look(service)
    assert before == 1
    assert len(hypervisor.asked) == before


def test_a_hypervisor_that_does_not_answer_changes_nothing(service: Service, hypervisor: Hypervisor) -> None:
    worked(service)
    hypervisor.off.add(IDS[0])
    hypervisor.silent["host-1"] = Unavailable("no route")
    look(service)
    assert service.machine("web-0").state is MachineState.RUNNING
