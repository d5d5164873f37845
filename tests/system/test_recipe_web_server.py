"""The recipe for a web server, with a real nginx and requests in flight."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Begun, Ended, Over
from tests.helpers.console.web import Web
from tests.helpers.programs.agent_program import serving
from tests.helpers.programs.nginx import Nginx
from tests.helpers.programs.process import free_port, until
from tests.helpers.programs.recipe_agents import agent_with, rehearsed


class WebServer(Nginx):
    """nginx in front of an application."""

    def __init__(self, folder: Path, behind: Web) -> None:
        self.port = free_port()
        super().__init__(
            folder,
            f"server {{ listen 127.0.0.1:{self.port}; location / {{ proxy_pass http://{behind.place}; }} }}",
        )

    @property
    def places(self) -> dict[str, str]:
        return {
            "/run/nginx.pid": str(self.pid_file),
            '"systemctl", "start", "nginx.service"': ", ".join(f'"{word}"' for word in self.command),
        }

    def ask(self, path: str) -> tuple[int, str]:
        answer = httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=60, trust_env=False)
        return answer.status_code, answer.text

    @property
    def refuses(self) -> bool:
        try:
            self.ask("/")
        except httpx.ConnectError:
            return True
        return False


@pytest.fixture
def behind() -> Iterator[Web]:
    web = Web("application")
    web.start()
    yield web
    web.stop()


@pytest.fixture
def nginx(tmp_path: Path, behind: Web) -> Iterator[WebServer]:
    made = WebServer(tmp_path, behind)
    made.start()
    yield made
    made.stop()


def test_open_requests_are_answered_new_ones_refused_and_the_server_returns(
    tmp_path: Path, behind: Web, nginx: WebServer
) -> None:
    probes = f"127.0.0.1:{free_port()}"
    places = {**nginx.places, "127.0.0.1:8171": probes}
    with (
        serving(tmp_path) as service,
        agent_with("web-server", service=service, machine="web-0", folder=tmp_path, places=places) as agent,
        ThreadPoolExecutor() as pool,
    ):
        slow = [pool.submit(nginx.ask, "/slow") for _ in range(3)]
        until(lambda: behind.held == 3, what="the slow requests")
        assert httpx.get(f"http://{probes}/readyz").status_code == 200

        service.post("/v1/machines/web-0/redeploy")
        agent.wait_for(Begun, side=Side.PREPARE)
        until(lambda: nginx.refuses, what="new requests to be refused")
        # A load balancer's probe gets an error, and the agent has not approved yet.
        assert httpx.get(f"http://{probes}/readyz").status_code == 503
        assert not any(each.done() for each in slow)
        assert not any(isinstance(entry, Ended | Approved) for entry in agent.entries())

        behind.release()
        assert [each.result() for each in slow] == [(200, "application")] * 3
        agent.wait_for(Approved)
        assert not nginx.pid_file.exists()

        service.advance(900)
        agent.wait_for(Over)
        assert nginx.ask("/") == (200, "application")
        assert httpx.get(f"http://{probes}/readyz").status_code == 200


def test_the_rehearsal_of_the_readme_succeeds(tmp_path: Path, nginx: WebServer) -> None:
    before = nginx.pid_file.read_text()
    told = rehearsed("web-server", tmp_path, nginx.places)
    assert told.count(" has ended") == 2
    assert nginx.pid_file.read_text() != before
    assert nginx.ask("/") == (200, "application")
