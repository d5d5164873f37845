"""Signing in, the rights of each role, and the end of a session."""

import re

from playwright.sync_api import Page, expect

from tests.helpers.console import accessibility
from tests.helpers.console.browsing import Visitor
from tests.helpers.console.console_fixtures import Serve, Visit, let_in
from tests.helpers.programs.process import Program
from tests.system.console.acting import answer, go, press

FLEET = """
[projects.shop]
[projects.lab]
[defaults]
driver = "simulated"
[groups.web]
kind = "availability-set"
update-domains = 2
project = "shop"
[hosts.host-1]
[[machines]]
name = "web-0"
group = "web"
host = "host-1"
address = "127.0.1.1"
[[machines]]
name = "secret-0"
project = "lab"
host = "host-1"
address = "127.0.1.2"
"""

SIGNED_OUT = "^401 "


def sign_in(page: Page, secret: str) -> None:
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()


def test_a_token_signs_in_all_tabs_and_signing_out_ends_them(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    secret = let_in(server, "ann", "operator")
    visitor = visit(server)
    visitor.expects(SIGNED_OUT, "^403 POST /v1/holds$")
    page, other = visitor.open("/console/machines/web-0"), visitor.open("/console/history")
    accessibility.check(page)
    page.get_by_label("Token").fill("fw_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("the token is not known, has expired or was revoked")
    sign_in(page, secret)
    expect(page.get_by_role("heading", level=1)).to_contain_text("web-0")
    expect(other.get_by_role("heading", level=1)).to_have_text("History")
    [cookie] = visitor.cookies
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    # A form of another page could send the cookie, were it not Strict; without the header it does nothing.
    status = page.evaluate("fetch('/v1/holds', {method: 'POST', body: '{}'}).then(answer => answer.status)")
    assert status == 403
    answer(press(page, "Restart"), "Restart web-0")
    assert server.all("orders")[0]["by"] == "ann"
    page.get_by_role("button", name="Menu of ann").click()
    page.get_by_role("button", name="Sign out").click()
    for tab in (page, other):
        expect(tab.get_by_role("heading", name="Sign in to forewarn")).to_be_visible()
    assert visitor.cookies == []


def test_a_tenant_sees_its_project_and_has_no_button_that_would_be_refused(
    serve: Serve, visit: Visit
) -> None:
    server = serve(fleet=FLEET)
    let_in(server, "ann", "operator")
    secret = let_in(server, "tom", "user", "shop")
    server.guest("127.0.1.1").poll()
    maintenance = server.post("/v1/hosts/host-1/maintenance", json={"action": "freeze"})
    [event] = [each["id"] for each in maintenance["events"] if each["resources"] == ["web-0"]]
    page = visit(server).open("/console/fleet")
    sign_in(page, secret)
    expect(page.get_by_role("main")).to_contain_text("web")
    views = page.get_by_role("navigation", name="Views")
    expect(views.get_by_role("link", name="Hosts")).to_have_count(0)
    expect(views.get_by_role("link", name="Rollouts")).to_have_count(0)
    expect(page.get_by_role("button", name="Hold …")).to_have_count(0)
    expect(page.get_by_role("button", name="advance")).to_have_count(0)
    go(page, "/machines/web-0")
    expect(page.get_by_role("button", name="Restart …")).to_be_visible()
    page.locator("main .menu-button").click()
    expect(page.get_by_role("menuitem")).to_have_text([re.compile("^Terminate")])
    page.keyboard.press("Escape")
    go(page, f"/events/{event}")
    expect(page.get_by_role("button", name="Approve …")).to_be_visible()
    # The order is the platform's, and may concern others.
    expect(page.get_by_role("button", name="Cancel …")).to_have_count(0)
    expect(page.get_by_text("maintenance freeze of a host, placed by")).to_be_visible()
    answer(press(page, "Approve"), "Approve")
    assert server.get(f"/v1/events/{event}")["event"]["approved"]
    go(page, f"/orders/{maintenance['order']['id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Maintenance freeze of a host")
    expect(page.get_by_text("secret-0")).to_have_count(0)
    expect(page.get_by_text("host-1")).to_have_count(0)


def test_a_viewer_sees_everything_and_has_no_buttons(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    let_in(server, "ann", "operator")
    page = visit(server).open("/console/hosts/host-1")
    sign_in(page, let_in(server, "eve", "viewer"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("host-1")
    expect(page.get_by_role("button", name="Hold …")).to_have_count(0)
    expect(page.locator("fw-action-buttons")).to_have_count(0)
    go(page, "/machines/secret-0?project=lab")
    expect(page.get_by_role("heading", level=1)).to_contain_text("secret-0")
    expect(page.locator("fw-action-buttons")).to_have_count(0)


def test_a_page_that_was_open_to_everybody_says_that_tokens_are_asked_for_now(
    serve: Serve, visit: Visit
) -> None:
    server = serve(fleet=FLEET)
    visitor = visit(server)
    visitor.expects(SIGNED_OUT)
    page = visitor.open("/console/machines/web-0")
    expect(page.get_by_role("heading", level=1)).to_contain_text("web-0")
    secret = let_in(server, "ann", "operator")
    expect(page.get_by_text("This server now requires a token")).to_be_visible()
    sign_in(page, secret)
    expect(page.get_by_role("heading", level=1)).to_contain_text("web-0")


def test_a_session_that_is_revoked_under_ones_feet_ends_at_once(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    let_in(server, "ann", "operator")
    secret = let_in(server, "eve", "operator")
    visitor = visit(server)
    visitor.expects(SIGNED_OUT)
    page = visitor.open("/console/machines/web-0")
    sign_in(page, secret)
    press(page, "Restart")
    server.post("/v1/tokens/eve/revoke")
    expect(page.get_by_role("heading", name="Sign in to forewarn")).to_be_visible()
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("web-0")).to_have_count(0)


def test_a_session_survives_a_restart_of_the_server(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    secret = let_in(server, "ann", "operator")
    page = visit(server).open("/console/machines/web-0")
    sign_in(page, secret)
    page.goto("about:blank")
    server.restart()
    page.goto(f"{server.operators}/console/machines/web-0")
    answer(press(page, "Restart"), "Restart web-0")
    server.operator(secret)
    assert server.all("orders")[0]["by"] == "ann"


def test_a_tab_begins_anew_when_somebody_else_signs_in(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    operator = let_in(server, "ann", "operator")
    tenant = let_in(server, "tom", "user", "shop")
    visitor = visit(server)
    visitor.expects(SIGNED_OUT)
    page = visitor.open("/console/machines/secret-0?project=lab")
    sign_in(page, operator)
    expect(page.get_by_role("heading", level=1)).to_contain_text("secret-0")
    page.evaluate("window.isOld = true")
    other = visitor.open("/console/fleet")
    other.get_by_role("button", name="Menu of ann").click()
    other.get_by_role("button", name="Sign out").click()
    visitor.expects("404 GET /v1/machines/secret-0")
    sign_in(other, tenant)
    expect(page.get_by_role("button", name="Menu of tom")).to_be_visible()
    assert page.evaluate("window.isOld") is None


def streams_of(visitor: Visitor) -> list[str]:
    """Note the streams that all tabs of a visitor open."""
    streams: list[str] = []
    visitor.watch(lambda request: streams.append(request.url) if "/v1/stream" in request.url else None)
    return streams


def test_tabs_share_one_stream_and_the_next_takes_over(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    streams = streams_of(visitor)
    tabs = [visitor.open("/console/history") for _ in range(3)]
    for tab in tabs:
        expect(tab.get_by_text("live", exact=True)).to_be_visible()
    assert len(streams) == 1
    tabs[0].close()
    server.post("/v1/holds", json={"reason": "an alarm"})
    for tab in tabs[1:]:
        expect(tab.locator("fw-hold-bar")).to_contain_text("an alarm")
    # It goes on after the last record that it has heard of.
    assert len(streams) == 2
    assert "since=" in streams[1]
