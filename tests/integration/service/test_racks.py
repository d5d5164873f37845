"""Machines that move stay in their racks, so that the next rollout has as few waves as the last."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.model.declaration import FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.rollout import RolloutTerms
from forewarn.core.words import GroupKind, GroupName, HostName, MachineName, ServiceMode, Work
from tests.harness import SIMULATION, Service
from tests.stores import sqlite_url

RACKS, HOSTS_EACH, GROUPS, MEMBERS, ALONE = 3, 6, 4, 9, 20


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    yield service
    service.close()


def fleet(seed: int, *, labelled: bool = True) -> FleetSpec:
    """A rack is an update domain of every group; who stands alone is anywhere."""
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


def waves(service: Service, work: Work) -> list[int]:
    """Plan a rollout in which a whole rack may be done at once."""
    asked = RolloutRequest(hosts=None, work=work, hosts_at_once=HOSTS_EACH, by="test", reason="")
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
    while service.rollout(mine).open:
        service.advance(hours=1)
    assert len(waves(service, Work.REBOOT)) <= RACKS
    assert len(waves(service, work)) <= len(before)


@pytest.mark.parametrize("seed", [0, 1])
def test_where_hosts_have_no_racks_half_of_a_wave_at_once_leaves_as_few_waves(
    service: Service, seed: int
) -> None:
    service.apply(fleet(seed, labelled=False))
    before = waves(service, Work.REBOOT)
    assert before == [HOSTS_EACH] * RACKS
    mine = service.roll(work=Work.REDEPLOY, hosts_at_once=HOSTS_EACH // 2)
    while service.rollout(mine).open:
        service.advance(hours=1)
    assert len(waves(service, Work.REBOOT)) <= len(before)
