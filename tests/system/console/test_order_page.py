"""The list of orders, and the page of an order with its stages, reasons and failures."""

import re

from playwright.sync_api import expect

from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs.process import Program

WEB_0 = "127.0.1.10"
# Three machines on a host: one moves live, one restarts on another host, one stays.
MOBILE = """
[defaults]
driver = "simulated"
[hosts.host-1]
at-once = 1
[hosts.host-2]
[[machines]]
name = "live"
host = "host-1"
mobility = "live"
[[machines]]
name = "cold"
host = "host-1"
[[machines]]
name = "stays"
host = "host-1"
mobility = "none"
"""


def test_an_order_shows_its_reasons_its_steps_and_the_machines_without_notice(
    server: Program, visit: Visit
) -> None:
    server.guest(WEB_0).document()
    first = server.post(
        "/v1/hosts/host-1/maintenance", json={"action": "freeze", "reason": "new <b>fans</b>"}
    )
    server.guest(WEB_0).document()
    second = server.post("/v1/hosts/host-2/maintenance", json={"action": "freeze"})["order"]
    page = visit(server).open(f"/console/orders/{second['id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Maintenance freeze of host host-2")
    for waiting in second["waiting"]:
        expect(page.get_by_text(waiting["reason"]).first).to_be_visible()
    page.get_by_role("navigation", name="Path").get_by_role("link", name="Orders").click()
    listed = page.get_by_role("region", name="Open")
    listed.get_by_role("link", name=first["order"]["id"][:8]).click()
    expect(page.get_by_text("because: new <b>fans</b>.")).to_be_visible()
    expect(page.locator(".notice", has_text="Waiting")).to_contain_text("(in 15 m)")
    steps = page.get_by_role("region", name="Stages and steps")
    expect(steps.get_by_role("row", name=re.compile("^web-0"))).to_contain_text("waiting")
    server.advance(900)
    expect(steps.get_by_role("row", name=re.compile("^web-0"))).to_contain_text("running")
    server.advance(400)
    expect(steps.get_by_role("row", name=re.compile("^web-0"))).to_contain_text("done")
    event = page.get_by_role("region", name="Its events").get_by_role("row", name=re.compile("web-0"))
    expect(event).to_contain_text("1 never notified")
    expect(event.get_by_role("cell").filter(has_text="finished").locator("time")).to_be_visible()
    event.get_by_role("link", name=re.compile("^[0-9A-F]{8}$")).click()
    machines = page.get_by_role("region", name="Who was told, and when")
    expect(machines.get_by_role("row", name=re.compile("^web-0"))).to_contain_text("told")
    expect(machines.get_by_role("row", name=re.compile("^web-3"))).to_contain_text("never told")
    expect(page.locator(".page-title").get_by_text("1 never notified")).to_be_visible()


def test_failed_external_work_waits_for_an_operator(server: Program, visit: Visit) -> None:
    asked = {"action": "reboot", "driver": "external", "emergency": "it burns"}
    order = server.post("/v1/hosts/host-3/maintenance", json=asked)["order"]["id"]
    page = visit(server).open(f"/console/orders/{order}")
    outside = page.get_by_role("region", name="External")
    expect(outside.get_by_text(f"forewarn order complete {order}")).to_be_visible()
    expect(page.locator(".notice", has_text="broken")).to_contain_text("it burns")
    server.advance(3600)
    expect(outside).to_contain_text("The work may proceed now")
    server.post(f"/v1/orders/{order}/fail", json={"reason": "no <i>spare</i> part"})
    failure = page.locator(".notice", has_text="failed")
    expect(failure.first).to_contain_text("no <i>spare</i> part")
    expect(failure.first).to_contain_text(f"forewarn order retry {order}")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    server.post(f"/v1/orders/{order}/abandon")
    expect(page.get_by_text(re.compile("^Ended 2027-03-01"))).to_be_visible()
    expect(outside).to_have_count(0)


def test_open_orders_show_their_reasons_and_ended_orders_are_below(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    server.post("/v1/machines/web-0/restart", json={"reason": "a leak"})
    page = visit(server).open("/console/orders")
    opened = page.get_by_role("region", name="Open")
    over = page.get_by_role("region", name="Ended")
    expect(opened.get_by_role("row", name=re.compile("restart of web-0"))).to_contain_text("not approved")
    server.advance(3600)
    expect(over.get_by_role("row", name=re.compile("restart of web-0"))).to_contain_text("done")
    expect(opened).to_contain_text("No open orders.")
    server.post("/v1/machines/web-1/restart")
    page.get_by_label("Search orders").fill("a leak")
    expect(opened).to_contain_text("No open order matches.")
    expect(page).to_have_url(re.compile(r"\?q=a\+leak$"))
    expect(over.get_by_role("row", name=re.compile("restart of web-0"))).to_be_visible()
    page.get_by_role("button", name="cancelled").click()
    expect(over.get_by_role("row")).to_have_count(0)
    page.get_by_role("button", name="all", exact=True).click()
    over.get_by_role("link", name=re.compile("^[0-9A-F]{8}$")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Restart of web-0")


def test_host_service_shows_how_each_machine_leaves_and_the_work_on_the_host(
    serve: Serve, visit: Visit
) -> None:
    server = serve(fleet=MOBILE)
    placed = server.post("/v1/hosts/host-1/service", json={"reason": "firmware"})
    page = visit(server).open(f"/console/orders/{placed['order']['id']}")
    stages = page.locator(".stage")
    expect(stages.nth(0)).to_contain_text("Stage 1 of 2: machines leave")
    for machine, way in (("live", "moves live"), ("cold", "moves and restarts")):
        row = stages.nth(0).get_by_role("row", name=re.compile(f"^{machine}"))
        expect(row).to_contain_text(way)
        (event,) = (each for each in placed["events"] if each["resources"] == [machine])
        expect(row.get_by_role("link", name=event["id"][:8])).to_be_visible()
        expect(row).to_contain_text("not before in")
    expect(stages.nth(1)).to_contain_text("Stage 2 of 2: work on the host")
    expect(stages.nth(1).get_by_role("row", name=re.compile("^stays"))).to_contain_text(
        "restarts with the host"
    )
    server.advance(2400)
    work = stages.nth(1).get_by_role("row", name=re.compile("^work"))
    expect(work).to_contain_text("running")
    expect(work).to_contain_text("counts as lost if not back by")
    server.advance(3600)
    expect(work).to_contain_text("done")
    expect(page.get_by_text(re.compile("^Ended 2027")).first).to_be_visible()


def test_an_order_with_repeated_announcements_is_stuck(server: Program, visit: Visit) -> None:
    order = server.post("/v1/hosts/host-1/maintenance", json={"action": "reboot"})["order"]
    for _ in range(2):
        hold = server.post("/v1/holds", json={"reason": "a fair"})["hold"]
        server.advance(3 * 3600)  # longer than an announced event may be late
        server.post(f"/v1/holds/{hold['id']}/release")
        server.advance(1)
    page = visit(server).open(f"/console/orders/{order['id']}")
    expect(page.locator(".badge", has_text="stuck").first).to_be_visible()
    expect(page.get_by_text("announced 3 times without a start").first).to_be_visible()


def test_a_held_event_past_its_not_before_is_due(server: Program, visit: Visit) -> None:
    event = server.post("/v1/machines/web-0/freeze")["event"]["id"]
    server.post("/v1/holds", json={"reason": "a fair"})
    server.advance(900 + 20)
    page = visit(server).open(f"/console/events/{event}")
    expect(page.locator("main")).to_contain_text("(due for 20 s)")
