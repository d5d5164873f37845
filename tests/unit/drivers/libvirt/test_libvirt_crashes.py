"""The server is killed before and after each operation on a domain; the next server completes the step."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import Any

import pytest

from forewarn.control.driver import Done, DriverTask, Failed, NotBegun, Running
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
from forewarn.drivers.libvirt.attempts import DomainAttempt
from forewarn.drivers.libvirt.background_calls import BackgroundCalls
from forewarn.drivers.libvirt.definition_copies import DefinitionCopies
from forewarn.drivers.libvirt.definitions import Definition, Disk
from forewarn.drivers.libvirt.domain_view import DomainJob, DomainMark, DomainState, DomainView
from forewarn.drivers.libvirt.hypervisor import Pool, Volume
from forewarn.drivers.libvirt.library import NoSuchDomain
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.step_hosts import LibvirtContext, StaleDomains
from forewarn.drivers.libvirt.upkeep import is_superseded

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
KVM01, KVM02 = (Host(name=HostName(name), uri=f"test://{name}") for name in ("kvm01", "kvm02"))
WEB = Machine(
    id=MachineId("u"),
    name=MachineName("web-0"),
    project=ProjectName("default"),
    group=GroupName("web"),
    host=KVM01.name,
)
OPTIONS = LibvirtOptions(destroy=True, freeze_for=timedelta(seconds=2), shutdown_for=timedelta(seconds=3))
EPHEMERAL = Disk(name="vda", path="/images/own", ephemeral=True)
MOST_TURNS = 30


def task(work: Work, *, to: Host | None = None) -> DriverTask:
    return DriverTask(
        order=OrderId("O"),
        attempt=1,
        action=Action.MAINTENANCE,
        work=work,
        machine=WEB,
        source=KVM01,
        target=to,
        moves=to is not None,
        begun_at=NOON,
        now=NOON,
        driver="libvirt",
    )


class KilledError(BaseException):
    """The server is killed here."""


class World:
    """Two hosts, a clock, and the operations at which the server is killed."""

    def __init__(self, *, kills: Collection[int] = (), after: bool = False) -> None:
        self.now = NOON
        self.done: list[str] = []
        self.acts = 0
        self.kills, self.after = kills, after  # the numbers of the operations at which the server is killed
        self.hosts = {host.name: FakeHypervisor(self, host.name) for host in (KVM01, KVM02)}
        self.hosts[KVM01.name].domain = FakeDomain(self.hosts[KVM01.name], DomainState.RUNNING)
        self.hosts[KVM01.name].files.add("/images/own")

    def happens(self, what: str, effect: Callable[[], None]) -> None:
        mine, self.acts = self.acts, self.acts + 1
        if mine in self.kills and not self.after:
            raise KilledError
        effect()
        self.done.append(what)
        if mine in self.kills:
            raise KilledError

    def get(self, host: Host) -> "FakeHypervisor":
        return self.hosts[host.name]

    def tools(self) -> LibvirtContext:
        connections: Any = self
        return LibvirtContext(
            connections=connections,
            options=OPTIONS,
            calls=BackgroundCalls(ended=lambda _: None),
            copies=DefinitionCopies(""),
            stale=StaleDomains(),
            now=lambda: self.now,
        )


class FakeHypervisor:
    """A host with one domain, and files in its storage pool."""

    def __init__(self, world: World, host: HostName) -> None:
        self.world, self.host = world, host
        self.domain: FakeDomain | None = None
        self.files: set[str] = set()

    def find(self, _uuid: str) -> "FakeDomain | None":
        return self.domain

    def uuid_of(self, _name: str) -> None:
        return None

    def define(self, _xml: str) -> "FakeDomain":
        def defined() -> None:
            other = self.world.hosts[KVM01.name].domain
            self.domain = FakeDomain(self, DomainState.OFF, mark=None if other is None else other.marked)

        self.world.happens(f"define on {self.host}", defined)
        assert self.domain is not None
        return self.domain

    def pool_of(self, *, name: str | None = None, path: str | None = None) -> Pool:
        return Pool(type="dir", source="")

    def volume(self, path: str) -> Volume | None:
        return Volume(path=path, capacity=1) if path in self.files else None

    def create(self, volume: Volume) -> None:
        self.world.happens(f"make on {self.host}", lambda: self.files.add(volume.path))

    def delete(self, path: str) -> None:
        self.world.happens(f"delete on {self.host}", lambda: self.files.discard(path))


class FakeDomain:
    """A domain in memory."""

    def __init__(self, on: FakeHypervisor, state: DomainState, *, mark: DomainMark | None = None) -> None:
        self.on, self.state, self.marked = on, state, mark

    def view(self) -> DomainView:
        if self.on.domain is not self:
            raise NoSuchDomain("it is gone")
        return DomainView(
            state=self.state, run=None if self.state is DomainState.OFF else 7, mark=self.marked
        )

    def write(self, mark: DomainMark) -> None:
        if self.on.domain is not self:
            raise NoSuchDomain("it is gone")
        self.on.world.happens("mark", lambda: setattr(self, "marked", mark))

    def definition(self, *, inactive: bool = False) -> Definition:
        return Definition(manager=None, disks=(EPHEMERAL,), immovable=(), has_agent=False)

    def xml(self, *, inactive: bool) -> str:
        return (
            "<domain><metadata>"
            "<f:machine xmlns:f='urn:forewarn:machine:1'><f:ephemeral disk='vda'/></f:machine>"
            "</metadata><devices><disk type='file'><source file='/images/own'/><target dev='vda'/></disk>"
            "</devices></domain>"
        )

    def boot(self) -> str:
        return ""

    def snapshots(self) -> int:
        return 0

    def has_saved_memory(self) -> bool:
        return False

    def _becomes(self, what: str, state: DomainState) -> None:
        self.on.world.happens(f"{what} on {self.on.host}", lambda: setattr(self, "state", state))

    def suspend(self) -> None:
        self._becomes("suspend", DomainState.PAUSED)

    def resume(self) -> None:
        self._becomes("resume", DomainState.RUNNING)

    def press_power_button(self) -> None:
        self._becomes("shut down", DomainState.OFF)

    def power_off(self) -> None:
        self._becomes("power off", DomainState.OFF)

    def start(self) -> None:
        self._becomes("start", DomainState.RUNNING)

    def undefine(self) -> None:
        self.on.world.happens(f"undefine on {self.on.host}", lambda: setattr(self.on, "domain", None))


def ended(world: World, of: DriverTask) -> Done | Failed:
    """Run a step to its end; after each kill, another server continues."""
    mark, verb, tools = "", "begin", world.tools()
    for _ in range(MOST_TURNS):
        try:
            answer: Any = getattr(DomainAttempt(replace(of, mark=mark), WEB, tools), verb)()
        except KilledError:
            tools, verb = world.tools(), "check"
            continue
        verb = "begin" if isinstance(answer, NotBegun) else "check"
        if isinstance(answer, Running):
            mark = answer.mark or mark
            world.now += timedelta(seconds=1)
        elif not isinstance(answer, NotBegun):
            assert isinstance(answer, Done | Failed), answer
            return answer
    raise AssertionError(world.done)


def killed_everywhere(work: Work, *, to: Host | None = None) -> Iterator[tuple[World, Done | Failed]]:
    """Run a step repeatedly, each time with a kill at the next operation."""
    for point in count():
        for after in (False, True):
            world = World(kills=(point,), after=after)
            answer = ended(world, task(work, to=to))
            if world.acts <= point:
                return
            yield world, answer


def test_a_freeze_suspends_once_after_a_kill_at_any_operation() -> None:
    for world, answer in killed_everywhere(Work.FREEZE):
        assert isinstance(answer, Done)
        happened = [each for each in world.done if each != "mark"]
        assert happened == ["suspend on kvm01", "resume on kvm01"], world.kills


def test_a_freeze_suspends_once_after_two_kills() -> None:
    for first, second in product(range(8), repeat=2):
        world = World(kills=(first, second), after=True)
        assert isinstance(ended(world, task(Work.FREEZE)), Done)
        assert world.done.count("suspend on kvm01") == 1, (first, second)


def test_a_termination_is_done_after_a_kill_at_any_operation() -> None:
    for world, answer in killed_everywhere(Work.TERMINATE):
        assert isinstance(answer, Done)
        assert world.done.count("undefine on kvm01") == 1
        assert world.hosts[KVM01.name].domain is None


def test_a_domain_that_never_existed_is_not_terminated() -> None:
    world = World()
    world.hosts[KVM01.name].domain = None
    answer = ended(world, task(Work.TERMINATE))
    assert isinstance(answer, Failed)
    assert "kvm01 has no domain with the UUID u of web-0" in answer.why


def test_a_move_is_done_after_a_kill_at_any_operation_and_disks_are_deleted_last() -> None:
    for world, answer in killed_everywhere(Work.REDEPLOY, to=KVM02):
        assert isinstance(answer, Done)
        assert (answer.host, world.hosts[KVM01.name].domain) == (KVM02.name, None)
        deeds = [each for each in world.done if each.startswith(("undefine", "delete"))]
        assert deeds in (["undefine on kvm01", "delete on kvm01"], ["undefine on kvm01"]), world.kills
        assert world.done.index("define on kvm02") < world.done.index("undefine on kvm01")


RUNS, PAUSED, OFF = (
    DomainView(state=state) for state in (DomainState.RUNNING, DomainState.PAUSED, DomainState.OFF)
)


@pytest.mark.parametrize(
    ("left", "kept", "goes"),
    [
        (OFF, RUNS, True),
        (RUNS, RUNS, True),  # the host has started it by itself
        (OFF, OFF, True),  # it was evicted in the meantime
        (RUNS, OFF, False),  # a person may have started it
        (RUNS, PAUSED, False),
        (OFF, replace(RUNS, persistent=False), False),  # a transient domain disappears when it stops
        (OFF, replace(RUNS, job=DomainJob()), False),  # it migrates, perhaps to this host
        (replace(PAUSED, migrating=True), RUNS, False),
    ],
)
def test_a_stale_domain_is_removed_only_if_the_recovered_one_is_sure_to_stay(
    left: DomainView, kept: DomainView, goes: bool
) -> None:
    assert is_superseded(left, kept) == goes
