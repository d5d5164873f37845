"""A real nova for tests: start it, control it, inspect it and stop it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.helpers.programs.process import Output, ending, until

PYTHON = Path(sys.executable).parents[1] / "nova" / "bin" / "python"
SERVER = Path(__file__).with_name("nova_server.py")
# An image of nova's fixtures.
IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
NETWORK = "3cb9bc59-5699-4588-a4b1-b87f96708bc6"
VERSION = {"OpenStack-API-Version": "compute 2.84"}
AS_USUAL = {
    **dict.fromkeys(("live_migration", "migration", "reboot", "pause", "stop"), 0.0),
    **dict.fromkeys(("live_migration_fails", "migration_fails", "evacuation_fails", "performs"), False),
    "misrouted": False,
    "reboots": [],
    "hold": None,
    "held": 0,
    "released": False,
}

CLOUDS = """
clouds:
  lab:
    auth_type: none
    auth: {{endpoint: "{url}"}}
    compute_endpoint_override: "{url}"
    compute_api_version: "2.1"
"""

WITH_KEYSTONE = """
clouds:
  lab:
    auth:
      auth_url: "{url}/v3"
      username: forewarn
      password: secret
      project_name: operations
      user_domain_name: Default
      project_domain_name: Default
"""


class Nova:
    """Actions of other administrators, and the behaviour of its hypervisors."""

    def __init__(self, url: str, process: Any) -> None:
        self.url = url
        self.process = process
        self._client = httpx.Client(headers=VERSION, timeout=60)

    # Its hypervisors

    def behave(self, **how: Any) -> None:
        """Change the behaviour of the hypervisors."""
        self._client.put(f"{self.url.removesuffix('/v2.1')}/control", json=how).raise_for_status()

    @property
    def behaviour(self) -> Any:
        return self._client.get(f"{self.url.removesuffix('/v2.1')}/control").json()

    # Its API

    def call(self, method: str, path: str, body: Any = None, *, user: str = "admin") -> Any:
        """Send a request as another administrator or the tenant."""
        mine = {"X-Auth-Token": user}
        answer = self._client.request(method, f"{self.url}{path}", json=body, headers=mine)
        assert answer.status_code < 400, answer.text
        return answer.json() if answer.content else None

    def create(self, name: str, *, host: str = "compute1", network: bool = False, **more: Any) -> str:
        """Create a server; return its id when it runs."""
        networks = [{"uuid": NETWORK}] if network else "none"
        wanted = {"name": name, "flavorRef": "1", "imageRef": IMAGE, "networks": networks, "host": host}
        hints = {"os:scheduler_hints": more.pop("hints")} if "hints" in more else {}
        made = self.call("POST", "/servers", {"server": wanted | more, **hints})["server"]["id"]
        until(lambda: self.server(made)["status"] != "BUILD", what="the server to be built")
        assert self.server(made)["status"] == "ACTIVE", self.server(made)
        return str(made)

    def server(self, id_: str) -> Any:
        return self.call("GET", f"/servers/{id_}")["server"]

    def host_of(self, id_: str) -> str:
        return str(self.server(id_)["OS-EXT-SRV-ATTR:host"])

    def exists(self, id_: str) -> bool:
        return self._client.get(f"{self.url}/servers/{id_}").status_code != 404

    def actions(self, id_: str) -> list[str]:
        """Return the actions on a server since its creation, oldest first."""
        found = self.call("GET", f"/servers/{id_}/os-instance-actions")["instanceActions"]
        return [each["action"] for each in reversed(found) if each["action"] != "create"]

    def migrations(self, id_: str) -> list[str]:
        found = self.call("GET", f"/os-migrations?instance_uuid={id_}")["migrations"]
        return [each["status"] for each in sorted(found, key=lambda each: int(each["id"]))]

    def act(self, id_: str, body: Any, *, user: str = "admin") -> None:
        self.call("POST", f"/servers/{id_}/action", body, user=user)

    def write(self, id_: str, key: str, value: str) -> None:
        """Write a server's metadata as its tenant."""
        self.call("PUT", f"/servers/{id_}/metadata/{key}", {"meta": {key: value}}, user="tenant")

    # Compute services

    def service(self, host: str) -> Any:
        return self.call("GET", f"/os-services?binary=nova-compute&host={host}")["services"][0]

    def set_service(self, host: str, **what: Any) -> None:
        self.call("PUT", f"/os-services/{self.service(host)['id']}", what)

    def reset(self) -> None:
        """Reset everything."""
        self.behave(released=True)
        self.behave(**AS_USUAL)
        for server in self.call("GET", "/servers?all_tenants=1")["servers"]:
            self.call("DELETE", f"/servers/{server['id']}")
        for group in self.call("GET", "/os-server-groups")["server_groups"]:
            self.call("DELETE", f"/os-server-groups/{group['id']}")
        for aggregate in self.call("GET", "/os-aggregates")["aggregates"]:
            for host in aggregate["hosts"]:
                gone = {"remove_host": {"host": host}}
                self.call("POST", f"/os-aggregates/{aggregate['id']}/action", gone)
            self.call("DELETE", f"/os-aggregates/{aggregate['id']}")
        for host in ("compute1", "compute2"):
            if self.service(host)["forced_down"]:
                self.behave(restarted=[host])  # it forgets evacuated servers
                self.set_service(host, forced_down=False)
            self.set_service(host, status="enabled")

    def write_clouds(self, folder: Path, *, keystone: str | None = None) -> Path:
        """Write clouds.yaml, with or without a keystone."""
        path = folder / "clouds.yaml"
        text = CLOUDS.format(url=self.url) if keystone is None else WITH_KEYSTONE.format(url=keystone)
        path.write_text(text)
        return path


@contextmanager
def a_nova(folder: Path) -> Iterator[Nova]:
    """Start nova, which takes half a minute."""
    assert PYTHON.exists(), "make test-openstack installs nova"
    with (folder / "nova.log").open("w") as log:
        process = subprocess.Popen(
            [PYTHON, SERVER],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    with ending(process):
        assert process.stdout is not None
        output = Output(process.stdout)
        until(lambda: output.lines or output.ended, what="nova to answer", within=180)
        assert output.lines, (folder / "nova.log").read_text()
        nova = Nova(output.lines[0], process)
        nova.reset()
        yield nova
