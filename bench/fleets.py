"""Fleets of any number of identical racks, so that a large fleet differs from a small one only in size.

A rack has 100 machines on 5 hosts: 4 availability sets of 20 across all hosts, and 20 standalone machines.
"""

from pathlib import Path

from forewarn.config import Settings
from forewarn.core.basic_types import GroupKind, GroupName, HostName, MachineName
from forewarn.core.draft import Draft
from forewarn.core.guests import enablement
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.server.preparation import PreparedServer, drivers_of, new_id, prepare_server

HOSTS, SETS, SET_SIZE, ALONE = 5, 4, 20, 20
SIMULATION = FleetDefaults(driver="simulated")
RACK = SETS * SET_SIZE + ALONE
# Settings without limits on the orders of one caller.
NO_LIMITS = {"FOREWARN_TIMES_USER_ORDERS": "1000000", "FOREWARN_OPERATOR_RATE": "0"}


def address(number: int) -> str:
    """Return the address of a machine. Loopback has sixteen million addresses."""
    return f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"


def racks(count: int) -> FleetSpec:
    """Declare a fleet of racks."""
    sets = [f"set-{rack}-{number}" for rack in range(count) for number in range(SETS)]
    return FleetSpec(
        defaults=SIMULATION,
        hosts=tuple(HostSpec(name=HostName(f"host-{number}")) for number in range(count * HOSTS)),
        groups=tuple(
            GroupSpec(name=GroupName(name), kind=GroupKind.AVAILABILITY_SET, update_domains=5)
            for name in sets
        ),
        machines=tuple(_machine(number) for number in range(count * RACK)),
    )


def one_group(size: int) -> FleetSpec:
    """Declare a fleet with one scale set."""
    name = GroupName("all")
    return FleetSpec(
        defaults=SIMULATION,
        hosts=(HostSpec(name=HostName("host-0")),),
        groups=(GroupSpec(name=name, kind=GroupKind.SCALE_SET, update_domains=5),),
        machines=tuple(
            MachineSpec(
                name=MachineName(f"vm-{number}"),
                host=HostName("host-0"),
                group=name,
                update_domain=number % 5,
                address=address(number),
            )
            for number in range(size)
        ),
    )


def alone(hosts: int) -> FleetSpec:
    """Declare hosts with one standalone machine each, and twice as many machines on a separate host."""
    apart = HostName("apart")
    names = [HostName(f"host-{number}") for number in range(hosts)]
    return FleetSpec(
        defaults=SIMULATION,
        hosts=tuple(HostSpec(name=name) for name in (*names, apart)),
        groups=(),
        machines=tuple(
            MachineSpec(name=MachineName(name), host=host, update_domain=0, address=address(number))
            for number, (name, host) in enumerate(
                [(f"vm-{host}", host) for host in names]
                + [(f"apart-{number}", apart) for number in range(2 * hosts)]
            )
        ),
    )


def toml(spec: FleetSpec) -> str:
    """Write the fleet file of a fleet of this module, in a form that every version reads."""
    parts = ["[defaults]", f'driver = "{spec.defaults.driver}"']
    parts += [f"[hosts.{host.name}]" for host in spec.hosts]
    for group in spec.groups:
        parts += [
            f"[groups.{group.name}]",
            f'kind = "{group.kind}"',
            f"update-domains = {group.update_domains}",
        ]
    for machine in spec.machines:
        parts += ["[[machines]]", f'name = "{machine.name}"', f'host = "{machine.host}"']
        parts += (
            [f'group = "{machine.group}"', f"update-domain = {machine.update_domain}"]
            if machine.group
            else []
        )
        parts += [f'address = "{machine.address}"']
    return "\n".join([*parts, ""])


def open_settings(database: Path, *, clock: str = "system") -> PreparedServer:
    """Open a store as a server does."""
    settings = Settings(database=f"sqlite:///{database}", clock=clock)
    return prepare_server(settings, drivers_of(settings))


def make_store(database: Path, spec: FleetSpec, *, enabled: bool) -> None:
    """Create a store with a fleet; with `enabled`, turn on notice for its groups."""
    opened = open_settings(database)
    try:
        opened.fleet.apply_fleet(opened.transact, spec, by="bench")
        if enabled:
            _enable_all(opened)
    finally:
        opened.store.close()


def _machine(number: int) -> MachineSpec:
    rack, place = divmod(number, RACK)
    group, member = divmod(place, SET_SIZE)
    return MachineSpec(
        name=MachineName(f"vm-{rack}-{place}"),
        host=HostName(f"host-{rack * HOSTS + place % HOSTS}"),
        group=GroupName(f"set-{rack}-{group}") if group < SETS else None,
        update_domain=member % HOSTS if group < SETS else 0,
        address=address(number),
    )


def _enable_all(opened: PreparedServer) -> None:
    """Enable every group in one transaction, because a transaction for each group would be slow."""
    with opened.store.batch() as batch, batch.savepoint() as tx:
        draft = Draft(tx.rules.everything(), now=opened.clock.now(), new_id=new_id)
        for group in tuple(draft.groups.values()):
            enablement.enable(draft, group, policy=opened.settings.times)
        tx.changes.save(draft.changes())
