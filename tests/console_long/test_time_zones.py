"""Typed and displayed times outside UTC."""

from playwright.sync_api import expect

from tests.helpers.console.console_fixtures import Visit
from tests.helpers.programs.process import Program


def test_times_are_typed_in_the_chosen_zone(server: Program, visit: Visit) -> None:
    server.post("/v1/hosts/host-1/cordon")
    server.advance(3600)
    server.post("/v1/hosts/host-1/uncordon")
    page = visit(server, timezone_id="Asia/Kolkata").open("/console/history")
    page.get_by_text("More filters").click()
    since = page.get_by_label("Since (local time)")
    since.fill("2027-03-01 14:45")
    since.press("Tab")
    page.wait_for_url("**since=2027-03-01T09%3A15%3A00Z")
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("radio", name="UTC").press(" ")
    expect(page.get_by_label("Since (UTC)")).to_have_value("2027-03-01 09:15")
    late = [each for each in server.history() if each["at"] >= "2027-03-01T09:15:00Z"]
    expect(page.locator(".record")).to_have_count(len(late))
    expect(page.get_by_role("heading", name="Monday 2027-03-01")).to_be_visible()
