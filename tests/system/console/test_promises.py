"""Promises on the page: counts by month and project, what they are made of, and files of them."""

import csv
import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs.process import Program

DAY = 24 * 3600
COUNTS = ("kept", "late", "never", "judged", "broken")


def _promises(server: Program) -> None:
    """Let one promise be kept, one be broken, and, a month later, one be neither heard nor kept."""
    web, shop = server.guest("127.0.1.10"), server.guest("127.0.1.20")
    web.document()
    shop.document()
    server.advance(600)
    server.post("/v1/machines/web-0/restart")
    web.document()
    server.advance(3600)
    server.post("/v1/hosts/host-3/maintenance", json={"action": "freeze", "emergency": "smoke"})
    server.advance(31 * DAY)
    web.document()
    server.advance(600)
    server.post("/v1/machines/web-0/restart")
    server.advance(3600)


def _row(page: Page, month: str) -> list[str]:
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=month))
    return [" ".join(text.split()) for text in row.locator("td").all_inner_texts()]


COUNTED = ("judged", "kept", "late", "never", "broken", "unannounced")


def test_counts_are_those_of_the_api_and_lead_to_their_records(server: Program, visit: Visit) -> None:
    _promises(server)
    page = visit(server).open("/console/promises")
    expect(page.get_by_role("rowheader", name="2027-04")).to_be_visible()
    for each in server.get("/v1/promises")["promises"]:
        shown = _row(page, each["month"])[3:]
        assert shown == [str(each[name]) for name in COUNTED]
    expect(page.get_by_role("img", name="2027-03 simulated: 100 % kept")).to_be_visible()
    page.get_by_role("link", name="1 never in 2027-04").click()
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.locator(".record")).to_have_count(1)
    expect(page.locator(".record")).to_contain_text("notice never")


def test_months_and_projects_are_chosen_in_the_address(server: Program, visit: Visit) -> None:
    _promises(server)
    page = visit(server).open("/console/promises?from=2027-04")
    expect(page.get_by_role("rowheader", name="2027-04")).to_be_visible()
    expect(page.get_by_role("rowheader", name="2027-03")).to_have_count(0)
    page.get_by_label("From").select_option("")
    expect(page.get_by_role("rowheader", name="2027-03")).to_be_visible()
    page.get_by_label("Work").select_option("real")
    expect(page.get_by_text("No promises are like that.")).to_be_visible()
    assert page.url.endswith("/console/promises?work=real")


def test_what_is_shown_can_be_taken_along(server: Program, visit: Visit) -> None:
    _promises(server)
    page = visit(server).open("/console/promises?to=2027-03")
    told = [each for each in server.get("/v1/promises")["promises"] if each["month"] == "2027-03"]
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export CSV").click()
    lines = csv.DictReader(Path(downloading.value.path()).read_text().splitlines())
    assert [int(line[name]) for line in lines for name in COUNTS] == [
        each[name] for each in told for name in COUNTS
    ]
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export JSON").click()
    assert json.loads(Path(downloading.value.path()).read_text()) == {"promises": told}


def test_a_promise_is_judged_on_the_page_when_it_falls_due(serve: Serve, visit: Visit) -> None:
    server = serve()
    page = visit(server).open("/console/promises")
    expect(page.get_by_text("nothing that was announced has started")).to_be_visible()
    _promises(server)
    expect(page.get_by_role("rowheader", name="2027-04")).to_be_visible()
