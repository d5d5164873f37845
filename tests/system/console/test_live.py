"""Live updates: changes appear at once, and the page recovers from a lost connection."""

import re

from playwright.sync_api import Page, expect

from tests.helpers.console.console_fixtures import Visit
from tests.helpers.programs.process import Program

# The errors of calls that were running when the server was killed.
AWAY = "^net::ERR_"


def mark(page: Page) -> None:
    """Mark the page, to detect a reload."""
    page.evaluate("window.isSame = true")


def is_same(page: Page) -> bool:
    return bool(page.evaluate("window.isSame"))


def test_changes_from_elsewhere_appear_at_once(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/machines/web-0")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    mark(page)
    server.post("/v1/machines/web-0/restart")
    expect(page.get_by_role("main")).to_contain_text("restarting")
    server.post("/v1/holds", json={"reason": "an alarm"})
    expect(page.locator("fw-hold-bar")).to_contain_text("an alarm")
    server.advance(3600)
    expect(page.get_by_role("main")).to_contain_text("running")
    assert is_same(page)


def test_two_people_see_each_others_actions(server: Program, visit: Visit) -> None:
    one, other = (visit(server).open("/console/machines/web-0") for _ in range(2))
    expect(other.get_by_text("live", exact=True)).to_be_visible()
    one.get_by_role("button", name="Hold …").click()
    one.get_by_role("dialog").get_by_label(re.compile("Reason")).fill("mine")
    one.get_by_role("dialog").get_by_role("button", name="Hold", exact=True).click()
    expect(other.locator("fw-hold-bar")).to_contain_text("mine")
    expect(other.get_by_role("log")).to_contain_text("hold")


def test_a_lost_connection_is_shown_and_recovers_without_a_gap(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expects(AWAY)
    page = visitor.open("/console/machines/web-0")
    expect(page.get_by_role("heading", level=1)).to_contain_text("web-0")
    mark(page)
    server.kill()
    banner = page.locator("fw-link-banner")
    expect(banner).to_contain_text("Reconnecting …")
    expect(banner).to_contain_text("The view may be out of date")
    expect(page.get_by_role("heading", level=1)).to_contain_text("web-0")
    server.start()
    server.post("/v1/holds", json={"reason": "an alarm"})
    server.post("/v1/holds", json={"reason": "a fire", "host": "host-1"})
    expect(page.locator("fw-hold-bar")).to_contain_text("an alarm")
    expect(page.locator("fw-hold-bar")).to_contain_text("a fire")
    expect(banner).not_to_contain_text("Reconnecting")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert is_same(page)
