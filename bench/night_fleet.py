"""The fleet of a night: 500 hosts in five racks, 10,000 machines, placed at random or aligned with the racks.

40 scale sets of five update domains have 2,400 machines. 800 availability sets of three have 2,400 machines.
The other 5,200 machines are standalone. The same seed makes the same fleet.
"""

import random
from collections.abc import Iterator

from forewarn.core.basic_types import SIMULATED, GroupKind, GroupName, HostName, MachineName, Mobility
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec

HOSTS, RACKS = 500, 5
SCALE_SETS, IN_SCALE_SET, SCALE_SET_DOMAINS = 40, 60, 5
SETS, IN_SET = 800, 3
ALONE = 5_200
SEED = 13
# The mobility of machines, in percent. Machines without mobility restart with their host.
MOBILITY = {Mobility.LIVE: 70, Mobility.COLD: 27, Mobility.NONE: 3}


def night_fleet(*, aligned: bool, seed: int = SEED, racks: bool = True) -> FleetSpec:
    """Make the fleet. If it is aligned, each update domain of a group has its own rack."""
    chance = random.Random(seed)
    hosts = [HostName(f"host-{number:03}") for number in range(HOSTS)]
    by_rack = [hosts[rack::RACKS] for rack in range(RACKS)]
    groups = [
        *(
            GroupSpec(
                name=GroupName(f"scale-{number:02}"),
                kind=GroupKind.SCALE_SET,
                update_domains=SCALE_SET_DOMAINS,
            )
            for number in range(SCALE_SETS)
        ),
        *(
            GroupSpec(
                name=GroupName(f"set-{number:03}"), kind=GroupKind.AVAILABILITY_SET, update_domains=IN_SET
            )
            for number in range(SETS)
        ),
    ]
    return FleetSpec(
        defaults=FleetDefaults(driver=SIMULATED),
        groups=tuple(groups),
        hosts=tuple(
            HostSpec(name=name, labels={"rack": f"rack-{number % RACKS}"} if racks else {}, at_once=4)
            for number, name in enumerate(hosts)
        ),
        machines=tuple(_machines(groups, by_rack, chance, aligned=aligned)),
    )


def _machines(
    groups: list[GroupSpec], by_rack: list[list[HostName]], chance: random.Random, *, aligned: bool
) -> Iterator[MachineSpec]:
    everywhere = [host for rack in by_rack for host in rack]
    for group in groups:
        size = IN_SCALE_SET if group.kind is GroupKind.SCALE_SET else IN_SET
        racks = chance.sample(range(RACKS), group.update_domains)
        for number in range(size):
            domain = number % group.update_domains
            places = by_rack[racks[domain]] if aligned else everywhere
            yield MachineSpec(
                name=MachineName(f"{group.name}-{number:02}"),
                group=group.name,
                host=chance.choice(places),
                update_domain=domain,
                mobility=_mobility(chance),
            )
    for number in range(ALONE):
        yield MachineSpec(
            name=MachineName(f"alone-{number:04}"),
            host=chance.choice(everywhere),
            mobility=_mobility(chance),
        )


def _mobility(chance: random.Random) -> Mobility:
    return chance.choices(tuple(MOBILITY), tuple(MOBILITY.values()))[0]
