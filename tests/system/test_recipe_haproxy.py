"""The recipe for a load balancer, with a real HAProxy in front of two servers: no request is lost."""

import csv
import socket
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Over
from tests.helpers.console.web import Web
from tests.helpers.programs.agent_program import serving
from tests.helpers.programs.process import Program, free_port, on_a_thread, running, until
from tests.helpers.programs.recipe_agents import EXAMPLES, agent_with, moved, rehearsed


class Balancer:
    """HAProxy with the config of the recipe."""

    def __init__(self, folder: Path, servers: dict[str, Web]) -> None:
        self.port = free_port()
        self.socket = str(folder / "admin.sock")
        text = (EXAMPLES / "haproxy" / "haproxy.cfg").read_text()
        places = {
            "/run/haproxy/admin.sock": self.socket,
            "bind :80": f"bind 127.0.0.1:{self.port}",
            "10.0.0.10:8080": servers["web-0"].place,
            "10.0.0.11:8080": servers["web-1"].place,
        }
        self._config = folder / "haproxy.cfg"
        self._config.write_text(moved(text, places))

    @contextmanager
    def running(self) -> Iterator[None]:
        with running(["haproxy", "-f", str(self._config)], self._config.parent):
            until(self._answers, what="HAProxy to see both servers")
            yield

    def status(self, server: str) -> str:
        """Return the status that HAProxy reports for a server, such as UP, DOWN or DRAIN."""
        rows = csv.DictReader(self.ask("show stat").lstrip("# ").splitlines())
        (found,) = [row for row in rows if (row["pxname"], row["svname"]) == ("web", server)]
        return found["status"]

    def _answers(self) -> bool:
        try:
            return {self.status(name) for name in ("web-0", "web-1")} == {"UP"}
        except OSError:
            return False

    def ask(self, command: str) -> str:
        """Send a command to HAProxy's runtime socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            connection.sendall(f"{command}\n".encode())
            with connection.makefile() as answer:
                return answer.read()


class Visitors:
    """A client that requests a page continuously."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.answers: Counter[tuple[int, str]] = Counter()
        self._over = threading.Event()

    @contextmanager
    def coming(self) -> Iterator[None]:
        with on_a_thread(self._come, self._over):
            yield

    def _come(self) -> None:
        while not self._over.is_set():
            self.answers[self.ask("/")] += 1

    def ask(self, path: str) -> tuple[int, str]:
        """Request a page, and return the status and the name of the server. A lost request has status 0."""
        try:
            answer = httpx.get(f"{self.url}{path}", timeout=60, trust_env=False)
        except httpx.HTTPError as error:
            return 0, repr(error)
        return answer.status_code, answer.text

    def answered_by(self, who: str) -> int:
        return self.answers[200, who]


@pytest.fixture
def servers() -> Iterator[dict[str, Web]]:
    made = {name: Web(name) for name in ("web-0", "web-1")}
    for web in made.values():
        web.start()
    yield made
    for web in made.values():
        web.stop()


@pytest.fixture
def balancer(servers: dict[str, Web]) -> Iterator[Balancer]:
    # Not in the test's folder, because the path of a socket has a maximum length.
    with tempfile.TemporaryDirectory(prefix="forewarn-") as folder:
        made = Balancer(Path(folder), servers)
        with made.running():
            yield made


def is_started(service: Program, event: str) -> bool:
    return service.get(f"/v1/events/{event}")["event"]["status"] == "Started"


def test_a_machine_leaves_the_load_balancer_and_returns_without_a_lost_request(
    tmp_path: Path, servers: dict[str, Web], balancer: Balancer
) -> None:
    visitors = Visitors(balancer.port)
    places = {"/run/haproxy/admin.sock": balancer.socket, "127.0.0.1:8171": f"127.0.0.1:{free_port()}"}
    with (
        serving(tmp_path) as service,
        agent_with("haproxy", service=service, machine="web-0", folder=tmp_path, places=places) as agent,
        visitors.coming(),
        ThreadPoolExecutor() as pool,
    ):
        slow = [pool.submit(visitors.ask, "/slow") for _ in range(6)]
        until(lambda: servers["web-0"].held and servers["web-1"].held, what="slow requests on both")

        event = service.post("/v1/machines/web-0/redeploy")["event"]["id"]
        until(lambda: balancer.status("web-0") == "DRAIN", what="the server to be drained")
        drained = visitors.answered_by("web-0")
        others = visitors.answered_by("web-1")
        until(lambda: visitors.answered_by("web-1") > others + 20, what="the other to take the visitors")
        # One request may have been in flight when the draining began.
        assert visitors.answered_by("web-0") <= drained + 1
        # Its slow requests still run, so the agent has not approved.
        assert not any(isinstance(entry, Ended | Approved) for entry in agent.entries())
        assert not is_started(service, event)

        for web in servers.values():
            web.release()
        assert {each.result() for each in slow} == {(200, "web-0"), (200, "web-1")}
        ended = agent.wait_for(Ended, side=Side.PREPARE)
        assert isinstance(ended, Ended)
        assert ended.why == "no session is left"
        agent.wait_for(Approved)
        until(lambda: is_started(service, event), what="the event to start")

        # The machine moves: its server is down for a while.
        servers["web-0"].stop()
        others = visitors.answered_by("web-1")
        until(lambda: visitors.answered_by("web-1") > others + 20, what="visitors meanwhile")
        servers["web-0"].start()
        service.advance(900)
        agent.wait_for(Over)
        until(lambda: balancer.status("web-0") == "UP", what="the server to be ready")
        before = visitors.answered_by("web-0")
        until(lambda: visitors.answered_by("web-0") > before + 5, what="visitors to come back")
    assert set(visitors.answers) == {(200, "web-0"), (200, "web-1")}


def test_a_cancelled_event_reenables_the_server(
    tmp_path: Path, servers: dict[str, Web], balancer: Balancer
) -> None:
    places = {"/run/haproxy/admin.sock": balancer.socket, "127.0.0.1:8171": f"127.0.0.1:{free_port()}"}
    visitors = Visitors(balancer.port)
    with (
        serving(tmp_path) as service,
        agent_with("haproxy", service=service, machine="web-0", folder=tmp_path, places=places) as agent,
        ThreadPoolExecutor() as pool,
    ):
        slow = [pool.submit(visitors.ask, "/slow") for _ in range(2)]
        until(lambda: servers["web-0"].held, what="a slow request")
        order = service.post("/v1/machines/web-0/redeploy")["order"]["id"]
        until(lambda: balancer.status("web-0") == "DRAIN", what="the server to be drained")
        service.post(f"/v1/orders/{order}/cancel")
        agent.wait_for(Over)
        assert balancer.status("web-0") == "UP"
        for web in servers.values():
            web.release()
        assert {each.result()[0] for each in slow} == {200}


@pytest.mark.parametrize("web_runs", [True, False], ids=["up", "down"])
def test_a_server_drained_by_an_administrator_stays_drained_even_if_the_agent_is_killed(
    tmp_path: Path, servers: dict[str, Web], balancer: Balancer, web_runs: bool
) -> None:
    places = {"/run/haproxy/admin.sock": balancer.socket, "127.0.0.1:8171": f"127.0.0.1:{free_port()}"}
    balancer.ask("set server web/web-0 state drain")
    if not web_runs:
        servers["web-0"].stop()
        until(lambda: balancer.status("web-0") == "DOWN", what="HAProxy to see that it is down")
    with (
        serving(tmp_path) as service,
        agent_with("haproxy", service=service, machine="web-0", folder=tmp_path, places=places) as agent,
    ):
        service.post("/v1/machines/web-0/redeploy")
        agent.wait_for(Approved)
        agent.kill()
        service.advance(900)
        agent.start()
        agent.wait_for(Over)
    if not web_runs:
        servers["web-0"].start()
    until(lambda: balancer.status("web-0") == "DRAIN", what="the server to be drained still")


def test_the_rehearsal_of_the_readme_succeeds(tmp_path: Path, balancer: Balancer) -> None:
    told = rehearsed("haproxy", tmp_path, {"/run/haproxy/admin.sock": balancer.socket})
    assert told.count("drain: prepare ready: no session is left") == 2
    assert balancer.status("web-0") == "UP"


def test_haproxy_accepts_the_config_of_the_recipe(tmp_path: Path) -> None:
    config = EXAMPLES / "haproxy" / "haproxy.cfg"
    ran = subprocess.run(["haproxy", "-c", "-f", config], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
