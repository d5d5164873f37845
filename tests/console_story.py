"""A busy morning on a fleet of two projects: something of everything that the console shows.

It is the same each time, to the second and the id, so that pictures of it change only with the page.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.console_fixtures import begin_in_the_morning
from tests.process import Program

SAME_IDS = Path(__file__).with_name("same_ids")

HOSTS = 10
# Name, project, kind, update domains, machines, priority.
GROUPS = (
    ("web", "shop", "availability-set", 5, 15, "regular"),
    ("checkout", "shop", "availability-set", 3, 6, "regular"),
    ("orders-db", "shop", "availability-set", 3, 3, "regular"),
    ("encoders", "media", "scale-set", 5, 20, "spot"),
    ("streaming", "media", "cloud-service", 2, 8, "regular"),
)
ALONE = ("build", "backup")


def fleet_file() -> str:
    """Write the fleet."""
    projects = "".join(f"[projects.{name}]\n" for name in ("shop", "media"))
    hosts = "".join(f"[hosts.kvm{number:02}]\n" for number in range(1, HOSTS + 1))
    groups = "".join(
        f'[groups.{name}]\nkind = "{kind}"\nupdate-domains = {domains}\nproject = "{project}"\n'
        for name, project, kind, domains, _, _ in GROUPS
    )
    return f'{projects}[defaults]\ndriver = "simulated"\n{hosts}{groups}{"".join(_machines())}'


def _machines() -> Iterator[str]:
    number = 0
    for group, _, _, domains, count, priority in GROUPS:
        for each in range(count):
            number += 1
            # Host by host, so that each carries machines of several groups and no two domains of one.
            host = each % domains * (HOSTS // domains) + each // domains % (HOSTS // domains)
            yield (
                f'[[machines]]\nname = "{group}-{each}"\ngroup = "{group}"\nhost = "kvm{host + 1:02}"\n'
                f'update-domain = {each % domains}\npriority = "{priority}"\naddress = "127.0.1.{number}"\n'
            )
    for name in ALONE:
        number += 1
        yield (
            f'[[machines]]\nname = "{name}"\nproject = "shop"\nhost = "kvm10"\naddress = "127.0.1.{number}"\n'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A server on which all of it has happened, and the addresses of what there is to see."""

    program: Program
    views: Mapping[str, str]


@contextmanager
def told(folder: Path) -> Iterator[Story]:
    """Serve the fleet, and let the morning pass."""
    begin_in_the_morning(folder)
    fleet = folder / "fleet.toml"
    fleet.write_text(fleet_file(), encoding="utf-8")
    with Program(folder, "--fleet", fleet, environment={"PYTHONPATH": str(SAME_IDS)}) as program:
        yield Story(program=program, views=_morning(program))


def _morning(program: Program) -> dict[str, str]:
    for number in (1, 16, 22, 25, 45, 53):
        program.guest(f"127.0.1.{number}").document()
    reason = {"reason": "kernel with the fix for the network card"}
    program.post("/v1/hosts/kvm09/maintenance", json={"action": "freeze", **reason})
    program.post("/v1/machines/encoders-3/evict")
    program.advance(20 * 60)
    program.post("/v1/machines/build/redeploy", json={"reason": "noisy neighbour"})
    program.post("/v1/hosts/kvm10/cordon")
    program.post("/v1/holds", json={"host": "kvm08", "reason": "waiting for a power supply"})
    rollout = program.post(
        "/v1/rollouts", json={"hosts": "all", "action": "reboot", "hosts_at_once": 2, **reason}
    )["rollout"]
    program.advance(16 * 60)
    restart = program.post("/v1/machines/checkout-2/restart", json={"reason": "a leak"})
    program.advance(60)
    program.post("/v1/machines/encoders-8/freeze")
    (event,) = [restart["event"]] if restart["event"] else program.all("events")[:1]
    return _views(event=event, order=restart["order"], rollout=rollout)


def _views(
    *, event: Mapping[str, Any], order: Mapping[str, Any], rollout: Mapping[str, Any]
) -> dict[str, str]:
    return {
        "fleet": "/console/fleet",
        "machine": "/console/machines/checkout-2?project=shop",
        "hosts": "/console/hosts",
        "host": "/console/hosts/kvm01",
        "timeline": "/console/timeline",
        "event": f"/console/events/{event['id']}",
        "orders": "/console/orders",
        "order": f"/console/orders/{order['id']}",
        "rollouts": "/console/rollouts",
        "plan": "/console/rollouts/new",
        "rollout": f"/console/rollouts/{rollout['id']}",
        "history": "/console/history",
        "promises": "/console/promises",
    }
