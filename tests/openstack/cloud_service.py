"""A forewarn server whose hosts are nova's computes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.programs.process import Program, until
from tests.openstack.real_nova import Nova

SETTINGS = """
[times]
unheard-notice = "0s"
preempt-notice = "0s"
terminate-notice = "0s"
linger = "0s"

[drivers.openstack]
cloud = "lab"
answer-for = "5s"
timeout = "30s"
freeze-for = "1s"
reboot-for = "6s"

[drivers.destroying]
kind = "openstack"
cloud = "lab"
destroy = true
"""

OPEN = ("queued", "announced", "started")


class CloudService(Program):
    """A server with the system clock, because nova has no other."""

    def order(self, id_: str) -> Any:
        return self.get(f"/v1/orders/{id_}")["order"]

    def ordered(self, machine: str, what: str, **more: Any) -> str:
        return str(self.post(f"/v1/machines/{machine}/{what}", json=more)["order"]["id"])

    def on_host(self, host: str, what: str, **more: Any) -> str:
        return str(self.post(f"/v1/hosts/{host}/{what}", json=more)["order"]["id"])

    def step(self, order: str) -> Any:
        """Return the last step of an order on a machine."""
        return self.order(order)["steps"][-1]

    def ended(self, order: str, *, within: float = 120) -> Any:
        """Wait until an order has ended or waits for a person; return it."""
        until(lambda: self.order(order)["state"] not in OPEN, what="its end", within=within)
        return self.order(order)

    def done(self, order: str, *, within: float = 120) -> Any:
        found = self.ended(order, within=within)
        assert found["state"] == "done", found
        return found

    def host_step(self, order: str, task: str) -> Any:
        found = [each for each in self.order(order)["host_steps"] if each["task"] == task]
        return found[0] if found else None

    def emptied(self, order: str) -> None:
        """Wait until a host is empty, and complete the work on it."""
        until(
            lambda: (self.host_step(order, "work") or {}).get("state") == "running",
            what="the work",
            within=120,
        )
        self.post(f"/v1/orders/{order}/complete")

    def machine(self, name: str) -> Any:
        return self.get(f"/v1/machines/{name}")["machine"]

    def calls(self, verb: str) -> float:
        """Count the calls of the driver."""
        metrics = self.call("GET", "/metrics").text.splitlines()
        mine = (
            each
            for each in metrics
            if each.startswith("forewarn_driver_calls_total{") and f'"{verb}"' in each
        )
        return sum(float(each.rsplit(" ", 1)[1]) for each in mine)

    def kinds(self, order: str) -> list[str]:
        return [each["kind"] for each in self.history() if each["order"] == order]


def fleet(machines: Mapping[str, str], *, driver: str = "openstack", mobility: str = "live") -> str:
    """Write a fleet of servers by machine name, all on compute1."""
    hosts = [f'[hosts.{name}]\ndriver = "{driver}"\n' for name in ("compute1", "compute2")]
    declared = [
        f'[[machines]]\nname = "{name}"\nvm-id = "{id_}"\nhost = "compute1"\n'
        f'priority = "spot"\nmobility = "{mobility}"\naddress = "127.0.0.{number}"\n'
        for number, (name, id_) in enumerate(machines.items(), start=11)
    ]
    return "\n".join([*hosts, *declared])


@contextmanager
def serving(
    nova: Nova, folder: Path, machines: Mapping[str, str] | None, **more: str
) -> Iterator[CloudService]:
    """Serve a fleet of nova's servers; None for an empty fleet."""
    (folder / "forewarn.toml").write_text(SETTINGS)
    (folder / "fleet.toml").write_text("" if machines is None else fleet(machines, **more))
    clouds = {"OS_CLIENT_CONFIG_FILE": f"{nova.write_clouds(folder)}"}
    flags = ("--config", folder / "forewarn.toml", "--fleet", folder / "fleet.toml")
    with CloudService(folder, *flags, clock="system", environment=clouds) as service:
        yield service
