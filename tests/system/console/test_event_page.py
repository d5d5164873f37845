"""The page of an event: notice by machine, approvals, reasons and outcome."""

import re

from playwright.sync_api import expect

from tests.helpers.console.browsing import PHONE
from tests.helpers.console.console_fixtures import Visit
from tests.helpers.programs.process import Program

WEB_0 = "127.0.1.10"


def test_the_page_follows_an_event_from_its_notice_to_its_end(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    event = server.post("/v1/machines/web-0/restart")["event"]["id"]
    page = visit(server).open(f"/console/events/{event}")
    title = page.get_by_role("heading", level=1)
    machines = page.get_by_role("region", name="Notice by machine")
    expect(title).to_have_text("Reboot: web-0 will restart")
    expect(page.get_by_text("Starts not before 2027-03-01 09:15:00 (in 15 m).")).to_be_visible()
    expect(page.get_by_text("Sooner with the approval of any of its machines.")).to_be_visible()
    expect(page.get_by_text("Waiting", exact=True)).to_have_count(0)
    expect(machines).to_contain_text("not told yet")
    # The line of the present begins below the times of the axis.
    now, tick = page.locator(".strip-now").bounding_box(), page.locator(".tick").first.bounding_box()
    assert now is not None
    assert tick is not None
    assert now["y"] >= tick["y"] + tick["height"] - 2

    server.guest(WEB_0).document()
    server.advance(300)
    server.guest(WEB_0).approve(event)
    expect(title).to_have_text("Reboot: web-0 restarts")
    ledger = page.get_by_role("region", name="Approvals and deferrals")
    expect(ledger.get_by_role("row", name=re.compile("web-0 a guest 2027-03-01 09:05:00"))).to_contain_text(
        WEB_0
    )
    expect(machines.get_by_role("row", name=re.compile("^web-0"))).to_contain_text("notified")

    server.advance(600)
    expect(title).to_have_text("Reboot: web-0 restarted")
    expect(page.get_by_text(re.compile("^Ended 2027-03-01 09:06:30"))).to_be_visible()
    expect(page.locator("dt", has_text="Measured impact").locator("+ dd")).to_have_text("1 m 30 s")
    expect(page.locator(".record")).to_have_count(
        len(server.get("/v1/history", params={"event": event})["records"])
    )
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def test_an_unarmed_event_and_a_postponed_event_show_their_reasons(server: Program, visit: Visit) -> None:
    first = server.post("/v1/hosts/host-1/degrade")["order"]["id"]
    events = server.post("/v1/hosts/host-2/degrade")["events"]
    (event,) = (each["id"] for each in events if each["group"] == "web")
    page = visit(server).open(f"/console/events/{event}")
    expect(page.get_by_text("Not armed yet: this event does not block other events")).to_be_visible()
    server.advance(7 * 24 * 3600 - 600)
    postponed = page.locator("p", has_text="The first NotBefore was 2027-03-08 09:00:00")
    expect(postponed).to_contain_text("domain 0")
    expect(postponed.get_by_role("link", name=first[:8])).to_be_visible()


def test_an_event_waits_for_other_events_of_its_stage_and_not_for_itself(
    server: Program, visit: Visit
) -> None:
    placed = server.post("/v1/hosts/host-1/maintenance", json={"action": "freeze"})
    machines = sum(len(event["resources"]) for event in placed["events"])
    own, *others = placed["events"]
    missing = sum(len(event["resources"]) for event in others)
    visitor = visit(server)
    page = visitor.open(f"/console/events/{own['id']}")
    waits = page.locator(".notice", has_text="Waiting")
    expect(waits).to_contain_text(
        f"{missing} of {machines} machines have not approved; starts 09:15 at the latest (in 15 m)"
    )
    expect(waits).not_to_contain_text(own["id"][:8])
    order = visitor.open(f"/console/orders/{placed['order']['id']}")
    reasons = order.locator(".notice", has_text="Waiting")
    expect(reasons.locator("ul").first.locator("> li")).to_have_count(1)
    expect(reasons).to_contain_text(f"{machines} of {machines} machines have not approved")
    reasons.get_by_text(f"{len(placed['events'])} events").click()
    expect(reasons.get_by_role("link", name=own["id"][:8])).to_be_visible()


def test_a_term_is_explained_by_keyboard_and_by_touch(server: Program, visit: Visit) -> None:
    event = server.post("/v1/hosts/host-1/degrade")["events"][0]["id"]
    page = visit(server, screen=PHONE).open(f"/console/events/{event}")
    armed = page.get_by_role("button", name="armed").first
    armed.tap()
    meaning = page.get_by_role("note")
    expect(meaning).to_contain_text("keeps the other update domains of its group away")
    box = meaning.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE.width
    page.keyboard.press("Escape")
    expect(meaning).to_have_count(0)
    armed.press("Enter")
    expect(meaning).to_contain_text("and may start")


def test_an_unknown_event_shows_a_message(calm: Program, visit: Visit) -> None:
    visitor = visit(calm)
    visitor.expects("404 GET /v1/events/")
    page = visitor.open("/console/events/602D9444-D2CD-49C7-8624-8643E7171297")
    expect(page.get_by_role("heading", level=1)).to_have_text("Event not found")
    page.get_by_role("link", name="Show the timeline").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Timeline")
