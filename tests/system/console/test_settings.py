"""Tokens and webhooks on their pages, and the explanation for a tenant on an operator's page."""

import http.server
import re
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.console import accessibility
from tests.helpers.console.browsing import THEMES, wait_until
from tests.helpers.console.console_fixtures import Serve, Visit, let_in
from tests.helpers.programs.process import Program, until
from tests.system.console.acting import answer, expect_command, fill, go, press

FLEET = """
[projects.shop]
[hosts.host-1]
[[machines]]
name = "web-0"
project = "shop"
host = "host-1"
address = "127.0.1.1"
"""
WIDTHS = (390, 1024, 1440)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Accepts every call."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[str]:
    """The address of a program that accepts calls."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/records"
        served.shutdown()
        thread.join()


def _look(page: Page) -> None:
    """Have axe look in both themes, and the page fit every width."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        wait_until(page, f"document.documentElement.scrollWidth <= {width}")
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        accessibility.check(page)


def test_the_first_token_is_made_and_its_secret_stays_until_it_is_read(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    visitor = visit(server)
    visitor.expects("^401 ")
    page = visitor.open("/console/fleet")
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Tokens").click()
    expect(page.get_by_text("This server is open.")).to_be_visible()
    dialog = press(page, "Create a token")
    fill(dialog, {"Name": "ann", "Role": "operator"})
    expect_command(dialog, "token create --name ann --role operator")
    dialog.get_by_role("button", name="Create token").click()
    secret = dialog.locator(".secret code").inner_text()
    # Every call needs a token from now on, those of this page too.
    expect(page.get_by_text("This server now requires a token")).to_be_attached()
    accessibility.check(page)
    page.keyboard.press("Escape")
    expect(dialog.locator(".secret code")).to_have_text(secret)
    dialog.get_by_role("button", name="Close").click()
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("row", name=re.compile("ann"))).to_contain_text("active")
    server.operator(secret)
    assert server.get("/v1/caller")["caller"]["name"] == "ann"


def test_tokens_are_replaced_and_revoked(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    secret = let_in(server, "ann", "operator")
    let_in(server, "tom", "user", "shop")
    page = visit(server).sign_in(secret, "/console/tokens")
    tom = page.get_by_role("row", name=re.compile(r"\btom\b"))
    dialog = press(tom, "Replace", in_menu=True)
    expect(dialog.get_by_label("Name (required)")).to_have_value("tom-2")
    fill(dialog, {"Expires after": "90d"})
    expect_command(dialog, "token create --name tom-2 --role user --project shop --expires 90d")
    dialog.get_by_role("button", name="Create new token").click()
    new = dialog.locator(".secret code").inner_text()
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator(".toast")).to_contain_text("Revoke tom when its user has switched to the new one")
    expect(page.get_by_role("row", name=re.compile("tom-2"))).to_contain_text("active")
    _look(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    dialog = press(tom.filter(has_not_text="tom-2"), "Revoke", in_menu=True)
    dialog.get_by_label("to confirm").fill("tom")
    expect_command(dialog, "token revoke tom")
    answer(dialog, "Revoke tom")
    page.get_by_text("1 token revoked or expired").click()
    expect(page.get_by_role("group", name="Revoked and expired tokens")).to_contain_text("tom")
    server.operator(new)
    assert server.get("/v1/caller")["caller"] == {
        "name": "tom-2",
        "role": "user",
        "project": "shop",
        "rights": ["see", "use"],
    }


def test_webhooks_are_added_tested_and_removed(serve: Serve, visit: Visit, receiver: str) -> None:
    server = serve(fleet=FLEET)
    page = visit(server).open("/console/webhooks")
    expect(page.get_by_text("No webhooks")).to_be_visible()
    dialog = press(page, "Add a webhook")
    fill(dialog, {"Address": receiver, "Project": "shop", "Kinds of records": "order-failed\nevent-started"})
    expect_command(dialog, f"webhook add {receiver} --kind order-failed --kind event-started --project shop")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.locator(".secret code")).to_have_text(re.compile("^whsec_"))
    dialog.get_by_role("button", name="Close").click()
    row = page.get_by_role("row").filter(has_text=receiver)
    expect(row).to_contain_text("all records delivered")
    dialog = press(row, "Test")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_role("heading")).to_have_text("The test call was accepted")
    dialog.get_by_role("button", name="Close").click()
    dialog = press(row, "New secret", in_menu=True)
    dialog.get_by_role("button", name="Create a new secret").click()
    expect(dialog.locator(".secret code")).to_have_text(re.compile("^whsec_"))
    dialog.get_by_role("button", name="Close").click()
    expect(row).to_have_count(2)
    [old, new] = server.all("webhooks")
    assert (old["kinds"], old["project"]) == (new["kinds"], new["project"])
    dialog = press(row.first, "Remove", in_menu=True)
    expect_command(dialog, f"webhook remove {old['id'][:8]}")
    answer(dialog, "Remove")
    expect(row).to_have_count(1)
    assert [each["id"] for each in server.all("webhooks")] == [new["id"]]


def test_a_webhook_that_fails_says_since_when_and_why(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    unreachable = "http://127.0.0.1:9/records"
    server.post("/v1/webhooks", json={"url": unreachable})
    server.post("/v1/hosts/host-1/cordon")
    until(lambda: server.all("webhooks")[0]["failing_since"], what="a failed call")
    page = visit(server).open("/console/webhooks")
    row = page.get_by_role("row").filter(has_text=unreachable)
    expect(row).to_contain_text("failing")
    expect(row).to_contain_text(re.compile(r"failed calls? since 2027-03-01 09:00:00"))
    expect(row).to_contain_text("not delivered yet")
    dialog = press(row, "Test")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_role("heading")).to_have_text("The test call failed")
    accessibility.check(page)
    dialog.get_by_role("button", name="Close").click()
    _look(page)


def test_a_tenant_is_told_why_a_page_is_not_for_it(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    let_in(server, "ann", "operator")
    secret = let_in(server, "tom", "user", "shop")
    # Nothing is asked that would be refused: a 403 would fail this test.
    page = visit(server).sign_in(secret, "/console/rollouts")
    main = page.get_by_role("main")
    expect(main.get_by_role("heading", level=1)).to_have_text("Rollouts: no access with your token")
    expect(main).to_contain_text("You are signed in as tom (user of project shop).")
    expect(main).to_contain_text("hosts and machines of every project")
    accessibility.check(page)
    for address, title in (
        ("/hosts", "Hosts"),
        ("/hosts/host-1", "Host"),
        ("/rollouts/new", "Plan a rollout"),
        ("/tokens", "Tokens"),
    ):
        go(page, address)
        expect(main.get_by_role("heading", level=1)).to_have_text(f"{title}: no access with your token")
    main.get_by_role("link", name="Show my machines").click()
    expect(page).to_have_url(re.compile("/console/fleet$"))
    page.get_by_role("button", name="Menu of tom").click()
    expect(page.get_by_role("link", name="Tokens")).to_have_count(0)
    page.get_by_role("link", name="Webhooks").click()
    expect(main.get_by_role("button", name="Add a webhook …")).to_be_visible()


def test_a_viewer_is_told_that_webhooks_are_not_for_it(serve: Serve, visit: Visit) -> None:
    server: Program = serve(fleet=FLEET)
    let_in(server, "ann", "operator")
    page = visit(server).sign_in(let_in(server, "eve", "viewer"), "/console/webhooks")
    expect(page.get_by_role("main")).to_contain_text("for users of a project and for operators")
