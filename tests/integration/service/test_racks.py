"""Machines move to hosts like theirs, so that the next rollout has as few waves as the last."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.basic_types import GroupKind, GroupName, HostName, MachineName, ServiceMode, Work
from forewarn.core.model.declaration import FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.rollout import Rollout, RolloutTerms
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.counts import tries
from tests.helpers.service.harness import SIMULATION, Service

RACKS, HOSTS_EACH, GROUPS, MEMBERS, ALONE = 3, 6, 4, 9, 20


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    yield service
    service.close()


def fleet(seed: int, *, labelled: bool = True) -> FleetSpec:
    """A rack is an update domain of every group; standalone machines are anywhere."""
    chance = Random(seed)
    hosts = [HostName(f"host-{number:02}") for number in range(RACKS * HOSTS_EACH)]
    groups = [GroupName(f"group-{number}") for number in range(GROUPS)]
    return FleetSpec(
        defaults=SIMULATION,
        groups=tuple(
            GroupSpec(name=name, kind=GroupKind.AVAILABILITY_SET, update_domains=RACKS) for name in groups
        ),
        hosts=tuple(
            HostSpec(name=name, labels={"rack": f"rack-{number % RACKS}"} if labelled else {})
            for number, name in enumerate(hosts)
        ),
        machines=(
            *(
                MachineSpec(
                    name=MachineName(f"{group}-{number}"),
                    group=group,
                    host=chance.choice(hosts[number % RACKS :: RACKS]),
                    update_domain=number % RACKS,
                )
                for group in groups
                for number in range(MEMBERS)
            ),
            *(
                MachineSpec(name=MachineName(f"alone-{number}"), host=chance.choice(hosts))
                for number in range(ALONE)
            ),
        ),
    )


def waves(service: Service, work: Work, *, at_once: int = HOSTS_EACH) -> list[int]:
    """Plan a rollout in which a whole rack may be done at once."""
    asked = RolloutRequest(hosts=None, work=work, hosts_at_once=at_once, by="test", reason="")
    return [len(wave.hosts) for wave in service.rollouts.plan(asked).rollout.waves]


@pytest.mark.parametrize(("work", "seed"), [(Work.REDEPLOY, 0), (Work.REDEPLOY, 1), (Work.HOST, 2)])
def test_after_a_rollout_that_moves_machines_the_next_has_no_more_waves(
    service: Service, work: Work, seed: int
) -> None:
    service.apply(fleet(seed))
    assert waves(service, Work.REBOOT) == [HOSTS_EACH] * RACKS
    before = waves(service, work)
    assert RACKS < len(before) <= 2 * RACKS
    terms = RolloutTerms(mode=ServiceMode.EVACUATE) if work is Work.HOST else RolloutTerms()
    mine = service.roll(work=work, hosts_at_once=HOSTS_EACH, terms=terms)
    run(service, mine)
    assert len(waves(service, Work.REBOOT)) <= RACKS
    assert len(waves(service, work)) <= a_tenth_more(len(before))


def test_without_racks_half_of_the_interchangeable_hosts_take_the_machines(service: Service) -> None:
    service.apply(fleet(0, labelled=False))
    before = waves(service, Work.REBOOT)
    assert before == [HOSTS_EACH] * RACKS
    mine = service.roll(work=Work.REDEPLOY, hosts_at_once=RACKS * HOSTS_EACH)
    assert [len(wave.hosts) for wave in mine.waves] == [HOSTS_EACH // 2] * 2 * RACKS
    assert sorted(map(len, mine.alike)) == [HOSTS_EACH] * RACKS
    homes = {home for order in service.everything().orders.values() for home in order.terms.homes}
    assert homes == {host for host in mine.alike[0] if host not in mine.waves[0].hosts}
    run(service, mine)
    assert len(waves(service, Work.REBOOT)) <= len(before)


# A property


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a fleet: groups have an update domain on each kind of host, or are placed anywhere."""

    kinds: int
    hosts_each: int
    groups: int
    members: int
    aligned: bool
    work: Work
    seed: int


SHAPES = st.builds(
    Shape,
    kinds=st.integers(2, 4),
    hosts_each=st.integers(2, 6),
    groups=st.integers(1, 6),
    members=st.integers(3, 12),
    aligned=st.booleans(),
    work=st.sampled_from([Work.REDEPLOY, Work.HOST]),
    seed=st.integers(0, 2**16),
)


def shaped(shape: Shape) -> FleetSpec:
    """A fleet without labels; a group has at most as many domains as there are kinds of hosts."""
    chance = Random(shape.seed)
    hosts = [HostName(f"host-{number:02}") for number in range(shape.kinds * shape.hosts_each)]
    groups, machines = [], []
    for number in range(shape.groups):
        group = GroupSpec(
            name=GroupName(f"group-{number}"),
            kind=GroupKind.AVAILABILITY_SET,
            update_domains=chance.randint(2, shape.kinds),
        )
        groups.append(group)
        kinds = chance.sample(range(shape.kinds), group.update_domains)
        for member in range(shape.members):
            domain = member % group.update_domains
            places = hosts[kinds[domain] :: shape.kinds] if shape.aligned else hosts
            machines.append(
                MachineSpec(
                    name=MachineName(f"{group.name}-{member}"),
                    group=group.name,
                    host=chance.choice(places),
                    update_domain=domain,
                )
            )
    return FleetSpec(
        defaults=SIMULATION,
        groups=tuple(groups),
        hosts=tuple(HostSpec(name=name, at_once=4) for name in hosts),
        machines=tuple(machines),
    )


@settings(max_examples=tries(6, long=150), deadline=None)
@given(shape=SHAPES)
def test_after_all_hosts_without_labels_were_emptied_there_are_at_most_a_tenth_more_waves(
    shape: Shape,
) -> None:
    """The domains of a fleet that is placed anywhere are fitted first. Otherwise its hosts form no waves."""
    with TemporaryDirectory() as folder, closing(Service(sqlite_url(Path(folder)))) as service:
        service.apply(shaped(shape))
        if not shape.aligned:
            fit(service)
        before = len(waves(service, Work.REBOOT, at_once=99))
        terms = RolloutTerms(mode=ServiceMode.EVACUATE) if shape.work is Work.HOST else RolloutTerms()
        run(service, service.roll(work=shape.work, hosts_at_once=99, terms=terms))
        assert len(waves(service, Work.REBOOT, at_once=99)) <= a_tenth_more(before)


def fit(service: Service) -> None:
    declarations = service.fleet.declarations
    application = declarations.application(declarations.domains(None, by="test").fleet, by="test")
    while not application.over:
        application.apply_next(service.transact)


def run(service: Service, rollout: Rollout) -> None:
    for _ in range(200):
        if not service.rollout(rollout).open:
            return
        service.advance(hours=1)
    raise AssertionError(f"not over: {service.rollout(rollout).waiting}")


def a_tenth_more(waves: int) -> int:
    return ceil(waves * 1.1)
