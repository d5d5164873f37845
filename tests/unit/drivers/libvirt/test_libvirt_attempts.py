"""An attempt views two hosts one after the other and does not report a failure that only seems to exist."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forewarn.control.driver import Done, DriverTask, Failed
from forewarn.core.basic_types import (
    Action,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    Work,
)
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId
from forewarn.drivers.libvirt import decisions
from forewarn.drivers.libvirt.attempts import DomainAttempt
from forewarn.drivers.libvirt.background_calls import BackgroundCalls
from forewarn.drivers.libvirt.decisions import Operation
from forewarn.drivers.libvirt.definition_copies import DefinitionCopies
from forewarn.drivers.libvirt.definitions import Definition
from forewarn.drivers.libvirt.domain_view import (
    AttemptEnd,
    BackgroundCall,
    DomainMark,
    DomainState,
    DomainView,
    StepView,
    new_mark,
)
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer
from forewarn.drivers.libvirt.operations import Operations
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.step_hosts import LibvirtContext, StaleDomains, StepHosts
from tests.helpers.programs.no_thread import no_thread

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
KVM01, KVM02 = (Host(name=HostName(name), uri=f"test://{name}") for name in ("kvm01", "kvm02"))
WEB = Machine(
    id=MachineId("u"),
    name=MachineName("web-0"),
    project=ProjectName("default"),
    group=GroupName("web"),
    host=KVM01.name,
)
TASK = DriverTask(
    order=OrderId("O"),
    attempt=1,
    action=Action.MAINTENANCE,
    work=Work.FREEZE,
    machine=WEB,
    source=KVM01,
    target=KVM02,
    moves=True,
    begun_at=NOON,
    now=NOON,
    driver="libvirt",
)
RUNS = DomainView(state=DomainState.RUNNING, mark=replace(new_mark(TASK, now=NOON), asked=NOON))
HELD = replace(RUNS, state=DomainState.PAUSED, migrating=True)


class Domain:
    """A host with a domain that shows a sequence of views; the last one repeats."""

    def __init__(self, host: HostName, *seen: DomainView | None) -> None:
        self.host = host
        self.seen_next: Sequence[DomainView | None] = seen
        self.written: list[DomainMark] = []

    def find(self, _uuid: str) -> "Domain | None":
        if self.seen_next[0] is not None:
            return self
        self._turn()
        return None

    def view(self) -> DomainView | None:
        return self._turn()

    def _turn(self) -> DomainView | None:
        now, *later = self.seen_next
        self.seen_next = later or self.seen_next
        return now

    def write(self, mark: DomainMark) -> None:
        self.written.append(mark)

    def definition(self, *, inactive: bool = False) -> Definition:
        return Definition(manager=None, disks=(), immovable=(), has_agent=False)

    def downtime(self) -> float:
        return 0.3


class Connections:
    def __init__(self, *domains: Domain) -> None:
        self._domains = {each.host: each for each in domains}

    def get(self, host: Host) -> Domain:
        return self._domains[host.name]


def checked(here: Domain, there: Domain) -> object:
    connections: Any = Connections(here, there)
    tools = LibvirtContext(
        connections=connections,
        options=LibvirtOptions(),
        calls=BackgroundCalls(ended=lambda _: None),
        copies=DefinitionCopies(""),
        stale=StaleDomains(),
        now=lambda: NOON,
    )
    return DomainAttempt(TASK, WEB, tools).check()


def test_a_migration_that_ends_between_two_views_is_no_failure() -> None:
    here, there = Domain(KVM01.name, RUNS, RUNS, None), Domain(KVM02.name, RUNS)
    assert checked(here, there) == Done(KVM02.name, 0.3)
    assert [each.ended for each in there.written] == [AttemptEnd.DONE]


def test_a_machine_that_keeps_running_on_both_hosts_is_a_failure() -> None:
    answer = checked(Domain(KVM01.name, RUNS), Domain(KVM02.name, RUNS))
    assert isinstance(answer, Failed)
    assert "it runs on both hosts" in answer.why


def test_a_machine_that_runs_again_on_its_source_is_not_powered_off() -> None:
    """The fake domain has no `power_off`, so a call would fail."""
    answer = checked(Domain(KVM01.name, HELD, HELD, RUNS), Domain(KVM02.name, RUNS))
    assert isinstance(answer, Failed)
    assert "it runs on both hosts" in answer.why


class Migrating(Domain):
    """A domain whose migration fails, and its hypervisors."""

    alive = True
    silent = False

    def migrate(self, _route: object) -> None:
        raise self.error

    def is_alive(self) -> bool:
        return self.alive

    def ping(self) -> None:
        if self.silent:
            raise NoLibvirtAnswer(f"{self.host}: client socket is closed", host=self.host)

    error: Exception = LibvirtRefused("operation failed: Lost connection to destination host")

    @property
    def hypervisor(self) -> "Migrating":
        return self


def broken_off(here: Migrating, there: Migrating) -> BackgroundCall:
    """Run a migration that fails; return the state of the call."""
    connections: Any = Connections(here, there)
    connections.open_another = connections.get
    ended = threading.Event()
    tools = LibvirtContext(
        connections=connections,
        options=LibvirtOptions(),
        calls=BackgroundCalls(ended=lambda _: ended.set()),
        copies=DefinitionCopies(""),
        stale=StaleDomains(),
        now=lambda: NOON,
    )
    places = StepHosts(TASK, WEB, tools)
    places.view()
    Operations(places, tools).run(Operation.MIGRATE, replace(new_mark(TASK, now=NOON)))
    assert ended.wait(60)
    call = tools.calls.of(TASK.id)
    assert call is not None
    return call


@pytest.mark.parametrize(
    "error",
    [
        LibvirtRefused("Lost connection to destination host"),
        NoLibvirtAnswer("kvm01: cannot connect to kvm02"),
    ],
)
def test_a_migration_whose_target_was_unreachable_has_not_failed(error: Exception) -> None:
    here, there = Migrating(KVM01.name, RUNS), Migrating(KVM02.name, None)
    here.error, there.silent = error, True
    call = broken_off(here, there)
    assert call == BackgroundCall(running=False)
    late = NOON + timedelta(hours=5)
    sight = StepView(source=RUNS, call=call)
    assert RUNS.mark is not None
    assert decisions.migrating(RUNS.mark, sight, now=late, options=LibvirtOptions()) is Operation.MIGRATE


@pytest.mark.parametrize(
    "error", [LibvirtRefused("the CPU is too old"), NoLibvirtAnswer("cannot connect to kvm02")]
)
def test_a_migration_whose_target_was_reachable_has_failed(error: Exception) -> None:
    here, there = Migrating(KVM01.name, RUNS), Migrating(KVM02.name, None)
    here.error = error
    assert broken_off(here, there) == BackgroundCall(running=False, error=str(error))


def test_a_migration_whose_source_was_unreachable_has_not_failed() -> None:
    here, there = Migrating(KVM01.name, RUNS), Migrating(KVM02.name, None)
    here.alive = False
    assert broken_off(here, there) == BackgroundCall(running=False)


def test_a_repeated_migration_gets_its_full_time() -> None:
    here, there = Migrating(KVM01.name, RUNS), Migrating(KVM02.name, None)
    there.silent = True
    broken_off(here, there)
    assert [mark.asked for mark in here.written] == [NOON]


def test_a_call_without_a_thread_is_not_running() -> None:
    calls = BackgroundCalls(ended=lambda _: None)
    attempt = AttemptId(OrderId("O"), "u", 1)
    with no_thread(), pytest.raises(RuntimeError, match="can't start new thread"):
        calls.begin(attempt, lambda: None)
    assert calls.of(attempt) is None
