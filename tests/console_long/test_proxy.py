"""The console behind nginx with TLS, configured as in the guide."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest
from playwright.sync_api import expect

from tests.helpers.console.console_fixtures import Serve, Visit, let_in
from tests.helpers.programs import certificates
from tests.helpers.programs.nginx import Nginx
from tests.helpers.programs.process import Program, free_port
from tests.system.console.acting import answer, go, press

GUIDE = Path(__file__).parents[2] / "docs/deploy/console-behind-a-proxy.md"

Proxy = Callable[[Program, int], None]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """Start nginx in front of a server, with the guide's configuration."""
    with ExitStack() as running:

        def put(server: Program, port: int) -> None:
            folder = tmp_path / "proxy"
            folder.mkdir()
            tls = certificates.made(folder)
            nginx = Nginx(folder, configuration(server, port, tls.certificate, tls.key))
            nginx.start()
            running.callback(nginx.stop)

        yield put


def configuration(server: Program, port: int, certificate: str, key: str) -> str:
    """Return the guide's configuration with the paths of this test."""
    found = re.search(r"```nginx\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text = dedent(found[1])
    for shown, here in {
        "listen 443": f"listen 127.0.0.1:{port}",
        "server_name forewarn.example": "server_name 127.0.0.1",
        "/etc/ssl/forewarn.example.pem": certificate,
        "/etc/ssl/forewarn.example.key": key,
        "http://127.0.0.1:8170": server.operators,
    }.items():
        assert text.count(shown) == 1
        text = text.replace(shown, here)
    return text


def test_sign_in_actions_live_updates_and_sign_out_work_through_the_proxy(
    serve: Serve,
    proxy: Proxy,  # before `visit`, so that it outlives the page
    visit: Visit,
) -> None:
    port = free_port()
    origin = f"https://127.0.0.1:{port}"
    server = serve(environment={"FOREWARN_OPERATOR_ORIGINS": origin})
    server.out.wait_for(f"  console    {origin}/console/, {server.operators}/console/")
    proxy(server, port)
    server.guest("127.0.1.10").document()
    secret = let_in(server, "olga", "operator")

    visitor = visit(server, through=origin, ignore_https_errors=True)
    page = visitor.sign_in(secret, "/console/fleet")
    (cookie,) = visitor.cookies
    assert (cookie["name"], cookie["secure"]) == (f"__Host-forewarn-session-{port}", True)

    tile = page.locator('.tile[data-machine$="/web-0"]')
    expect(tile).to_have_attribute("data-look", "running")
    server.post("/v1/machines/web-0/restart")
    expect(tile).to_have_attribute("data-look", "announced")

    go(page, "/machines/db")
    answer(press(page, "Restart"), "Restart db")
    assert server.all("orders")[0]["machine"] == "db"

    visitor.expects("^401 ")  # open requests at sign-out
    page.get_by_role("button", name="Menu of olga").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert visitor.cookies == []
