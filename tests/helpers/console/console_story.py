"""A busy morning on a fleet of two projects, with an example of everything that the console shows.

It is the same each time, to the second and if wanted to the id, so that pictures of it change only with the
page.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.helpers.console.console_fixtures import begin_in_the_morning
from tests.helpers.programs.process import Program

SAME_IDS = ROOT / "tests/same_ids"

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
# The mobility of each machine on a host that gets service.
SERVICED = "kvm11"
MOBILE = {"render-0": "live", "render-1": "cold", "render-2": "cold", "license": "none"}
# Machines, by the last number of their addresses.
EVERYBODY = frozenset(range(1, sum(group[4] for group in GROUPS) + len(ALONE) + len(MOBILE) + 1))

VIEWS = (
    *("fleet", "machine", "hosts", "host", "timeline", "event", "orders", "order"),
    *("rollouts", "plan", "rollout", "history", "promises", "tokens", "webhooks"),
)

MINUTE = 60
DAY = 24 * 60 * MINUTE


def fleet_file() -> str:
    """Write the fleet file."""
    projects = "".join(f"[projects.{name}]\n" for name in ("shop", "media"))
    hosts = "".join(f"[hosts.kvm{number:02}]\n" for number in range(1, HOSTS + 1))
    hosts += f'[hosts.{SERVICED}]\nat-once = 1\nlabels = {{rack = "b"}}\nresources = {{memory = 64}}\n'
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
            # Each host carries machines of several groups, and one update domain of each.
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
    for name, mobility in MOBILE.items():
        number += 1
        yield (
            f'[[machines]]\nname = "{name}"\nproject = "media"\nhost = "{SERVICED}"\n'
            f'mobility = "{mobility}"\nresources = {{memory = 8}}\naddress = "127.0.1.{number}"\n'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A server after that morning, and the addresses of its views."""

    program: Program
    views: Mapping[str, str]


@contextmanager
def told(
    folder: Path,
    *,
    renamed: Mapping[str, str] | None = None,
    reason: str = "",
    has_same_ids: bool = False,
) -> Iterator[Story]:
    """Serve the fleet and play the morning, optionally with other names for machines, groups and hosts.

    A `reason` is given for everything that is ordered, instead of one for each.
    """
    begin_in_the_morning(folder)
    fleet = folder / "fleet.toml"
    fleet.write_text(_with_names(fleet_file(), renamed or {}), encoding="utf-8")
    # Reproducible ids need a fresh Python process, so this server cannot be forked.
    environment = {"PYTHONPATH": str(SAME_IDS)} if has_same_ids else {}
    with Program(folder, "--fleet", fleet, environment=environment) as program:
        morning = _Morning(program=program, renamed=renamed or {}, reason=reason)
        morning.months_before()
        yield Story(program=program, views=morning.views())


def _with_names(text: str, renamed: Mapping[str, str]) -> str:
    for name, other in renamed.items():
        text = re.sub(rf"\b{re.escape(name)}(?=[\"\]/?]|$)", other, text)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Morning:
    program: Program
    renamed: Mapping[str, str]
    reason: str

    def months_before(self) -> None:
        """Advance nine weeks to create past promises, most of them kept."""
        for host, late, never in (("kvm01", {1}, {16}), ("kvm04", {17}, set()), ("kvm07", {4}, set())):
            self._poll(EVERYBODY)
            self.program.advance(10 * MINUTE)
            order = self._order(f"hosts/{host}/maintenance", action="freeze", driver="external")["order"]
            self._poll(EVERYBODY - late - never)
            self.program.advance(14 * MINUTE)
            self._poll(late)
            self.program.advance(20 * MINUTE)
            self.program.post(f"/v1/orders/{order['id']}/complete")
            self.program.advance(21 * DAY - 44 * MINUTE)
        self._order("hosts/kvm06/maintenance", action="freeze", emergency=self.reason or "smoke in the row")
        self.program.advance(10 * MINUTE)

    def views(self) -> dict[str, str]:
        """Play the morning, and return the addresses of the views."""
        self._poll(EVERYBODY)
        kernel = "kernel with the fix for the network card"
        self._order("hosts/kvm09/maintenance", kernel, action="freeze")
        self._order("machines/encoders-3/evict")
        self._poll(EVERYBODY)
        self.program.advance(20 * MINUTE)
        self._order("machines/build/redeploy", "noisy neighbour")
        self._order("hosts/kvm10/cordon")
        self._order("holds", "waiting for a power supply", host="kvm08")
        rollout = self._order("rollouts", kernel, hosts="all", action="reboot", hosts_at_once=2)["rollout"]
        service = self._order(f"hosts/{SERVICED}/service", "new firmware")
        self._poll(EVERYBODY - {1, 2})
        self.program.advance(16 * MINUTE)
        restart = self._order("machines/checkout-2/restart", "a leak")
        self._poll(EVERYBODY)
        self.program.advance(MINUTE)
        self._order("machines/encoders-8/freeze")
        event = restart["event"] or self.program.all("events")[0]
        found = _views(event=event, order=service["order"], rollout=rollout)
        return {view: _with_names(address, self.renamed) for view, address in found.items()}

    def _order(self, path: str, reason: str = "", **body: Any) -> Any:
        reason = self.reason or reason
        given = {**body, "reason": reason} if reason and "emergency" not in body else body
        return self.program.post(_with_names(f"/v1/{path}", self.renamed), json=given)

    def _poll(self, machines: Iterable[int]) -> None:
        """Poll for events from these machines."""
        for number in sorted(machines):
            self.program.guest(f"127.0.1.{number}").document()


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
        "tokens": "/console/tokens",
        "webhooks": "/console/webhooks",
    }
