"""Network namespaces: a host at 169.254.169.254, and guests that reach it over a bridge."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.programs.process import FOREWARN, PATIENCE

METADATA = "169.254.169.254"
HOST, HOST_SIX = "10.77.0.1", "fd77::1"


class Network:
    """A bridge in the host's namespace, with a cable to the namespace of each guest."""

    def __init__(self, guests: Mapping[str, int]) -> None:
        """Take the guests' names with the last octets of their addresses."""
        self._guests = dict(guests)

    def namespace(self, who: str) -> str:
        return f"forewarn-{os.getpid()}-{who}"

    def inside(self, who: str) -> list[str]:
        """Return the command prefix that runs a command in a namespace."""
        return ["ip", "netns", "exec", self.namespace(who)]

    def shell(self, who: str, line: str) -> str:
        """Run a shell line in a namespace, and return its output."""
        done = subprocess.run(
            [*self.inside(who), "sh", "-c", line],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def forewarn(self, server: str, line: str) -> Any:
        """Run a `forewarn` command on the host, and return its JSON output."""
        return json.loads(self.shell("host", f"{shlex.quote(FOREWARN)} --server {server} --json {line}"))

    def build(self) -> None:
        for who in ("host", *self._guests):
            _ip(f"netns add {self.namespace(who)}")
            self._set(who, "link set lo up")
        self._set("host", "link add name guests type bridge")
        self._set("host", f"addr add {METADATA}/32 dev guests")
        self._set("host", f"addr add {HOST}/24 dev guests")
        self._set("host", f"addr add {HOST_SIX}/64 dev guests nodad")
        self._set("host", "link set guests up")
        for name, number in self._guests.items():
            self._connect(name, number)

    def remove(self) -> None:
        """Remove everything that `build` has created, even if it failed halfway.

        Cables go with their namespaces.
        """
        for who in ("host", *self._guests):
            if Path("/run/netns", self.namespace(who)).exists():
                _ip(f"netns del {self.namespace(who)}")

    def _connect(self, name: str, number: int) -> None:
        cable = f"to-{number}"
        self._set("host", f"link add {cable} type veth peer name eth0 netns {self.namespace(name)}")
        self._set("host", f"link set {cable} master guests up")
        self._set(name, f"addr add 10.77.0.{number}/24 dev eth0")
        self._set(name, f"addr add fd77::{number:x}/64 dev eth0 nodad")
        self._set(name, "link set eth0 up")
        self._set(name, f"route add {METADATA} dev eth0")

    def _set(self, who: str, what: str) -> None:
        _ip(f"-n {self.namespace(who)} {what}")


@contextmanager
def network(**guests: int) -> Iterator[Network]:
    """Build a network, and remove it afterwards."""
    built = Network({name.replace("_", "-"): number for name, number in guests.items()})
    try:
        built.build()
        yield built
    finally:
        built.remove()


def _ip(line: str) -> None:
    done = subprocess.run(["ip", *line.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {line}\n{done.stderr}"
