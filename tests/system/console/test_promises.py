"""The promises view: counts by month and project, links to records, and export."""

import csv
import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs.process import Program

DAY = 24 * 3600
COUNTS = ("kept", "late", "never", "judged", "broken")


def _promises(server: Program) -> None:
    """Keep one promise, break one, and a month later leave one machine without a poll."""
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


def test_counts_equal_the_api_and_link_to_their_records(server: Program, visit: Visit) -> None:
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


def test_the_filters_are_in_the_url(server: Program, visit: Visit) -> None:
    _promises(server)
    page = visit(server).open("/console/promises?from=2027-04")
    expect(page.get_by_role("rowheader", name="2027-04")).to_be_visible()
    expect(page.get_by_role("rowheader", name="2027-03")).to_have_count(0)
    page.get_by_label("From").select_option("")
    expect(page.get_by_role("rowheader", name="2027-03")).to_be_visible()
    page.get_by_label("Work").select_option("real")
    expect(page.get_by_text("No promises match.")).to_be_visible()
    assert page.url.endswith("/console/promises?work=real")


def test_the_visible_counts_can_be_exported(server: Program, visit: Visit) -> None:
    _promises(server)
    page = visit(server).open("/console/promises?to=2027-03")
    expected = [each for each in server.get("/v1/promises")["promises"] if each["month"] == "2027-03"]
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export CSV").click()
    lines = csv.DictReader(Path(downloading.value.path()).read_text().splitlines())
    assert [int(line[name]) for line in lines for name in COUNTS] == [
        each[name] for each in expected for name in COUNTS
    ]
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export JSON").click()
    assert json.loads(Path(downloading.value.path()).read_text()) == {"promises": expected}


def test_a_new_verdict_appears_at_once(serve: Serve, visit: Visit) -> None:
    server = serve()
    page = visit(server).open("/console/promises")
    expect(page.get_by_text("no announced event has ended")).to_be_visible()
    _promises(server)
    expect(page.get_by_role("rowheader", name="2027-04")).to_be_visible()
