"""The history view: live records, filters, links to a record, and the export."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.helpers.console.console_fixtures import Visit
from tests.helpers.programs.process import Program, run
from tests.system.console.acting import go

HOSTILE = 'board, "swapped" <b>exe</b>'


def _lines(page: Page) -> list[str]:
    return page.locator(".record").all_inner_texts()


def _query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


@pytest.fixture
def busy(server: Program) -> Program:
    """A server with a restart and an emergency in its history."""
    server.guest("127.0.1.10").document()
    server.advance(600)
    server.post("/v1/machines/web-0/restart")
    server.post("/v1/hosts/host-3/maintenance", json={"action": "freeze", "emergency": HOSTILE})
    server.advance(3600)
    return server


def test_a_new_record_appears_at_once(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/history")
    expect(page.locator(".record")).not_to_have_count(0)
    busy.post("/v1/hosts/host-1/cordon")
    record = page.locator(".record").filter(has_text="host changed").first
    expect(record.get_by_role("link", name="host-1")).to_have_attribute("href", "/console/hosts/host-1")


def _repeat(route: Route) -> None:
    """Answer with the oldest record of the real answer, four times."""
    answer = route.fetch()
    body = answer.json()
    record = body["records"][-1]
    repeats = [{**record, "number": record["number"] + number} for number in (3, 2, 1, 0)]
    route.fulfill(response=answer, json={**body, "records": repeats, "next": None})


def test_repeated_records_share_a_row_that_unfolds(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/history")
    expect(page.locator(".record")).not_to_have_count(0)
    page.route("**/v1/history?*", _repeat)
    page.get_by_role("button", name="Orders", exact=True).click()
    expect(page.locator(".record")).to_have_count(1)
    repeats = page.locator(".record-repeats")
    expect(repeats.locator("summary")).to_contain_text("4 times in ")
    repeats.locator("summary").click()
    expect(repeats.get_by_role("link", name="record")).to_have_count(3)
    page.unroute("**/v1/history?*")


def test_new_records_do_not_move_the_list_while_someone_reads(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/history")
    expect(page.locator(".record")).not_to_have_count(0)
    before, known = _lines(page), len(busy.history())
    page.locator(".record").last.scroll_into_view_if_needed()
    expect(page.locator(".record").first).not_to_be_in_viewport()
    busy.post("/v1/hosts/host-1/cordon")
    page.get_by_role("button", name=" new").wait_for()
    busy.post("/v1/hosts/host-1/uncordon")
    more = len(busy.history()) - known
    news = page.get_by_role("button", name=f"{more} new", exact=True)
    news.wait_for()
    assert _lines(page) == before
    news.click()
    expect(page.locator(".record")).to_have_count(len(before) + more)
    expect(page.locator(".record").first).to_be_in_viewport()


def test_filters_are_in_the_url_and_match_the_api(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/history")
    page.get_by_role("button", name="Promises", exact=True).click()
    found = [each for each in busy.history() if each["kind"].startswith(("promise", "notice"))]
    expect(page.locator(".record")).to_have_count(len(found))
    assert _query(page) == {"kind": ["promises"]}
    page.get_by_text("More filters").click()
    page.get_by_role("checkbox", name="notice never").uncheck()
    expect(page.get_by_role("button", name="Promises 3/4")).to_be_visible()
    page.get_by_label("Machine", exact=True).fill("web-2")
    page.get_by_label("Machine", exact=True).press("Tab")
    # The machine had no notice, and another update domain was disturbed too.
    expect(page.locator(".record")).to_have_count(2)
    query = _query(page)
    assert query["machine"] == ["web-2"]
    assert set(query["kind"][0].split(",")) == {"promise-broken", "notice-late", "unannounced-impact"}
    page.reload()
    expect(page.locator(".record")).to_have_count(2)
    page.get_by_role("button", name="Remove filter Machine: web-2").click()
    page.get_by_role("button", name="Clear all filters").click()
    expect(page.locator(".record").filter(has_text="order placed")).not_to_have_count(0)
    assert _query(page) == {}


def test_typed_text_stays_while_the_list_reloads(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/history")
    expect(page.locator(".record")).not_to_have_count(0)
    page.get_by_text("More filters").click()
    held: list[Route] = []
    page.route("**/v1/history?*", lambda route: held.append(route))
    page.get_by_role("button", name="Promises", exact=True).click()
    page.get_by_label("Machine", exact=True).fill("web-2")
    expect(page.locator(".history-list")).to_have_attribute("aria-busy", "true")
    for route in held:
        route.continue_()
    page.unroute("**/v1/history?*")
    expect(page.locator(".history-list")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator(".record").filter(has_text="order placed")).to_have_count(0)
    expect(page.get_by_label("Machine", exact=True)).to_have_value("web-2")


def test_the_link_of_a_record_shows_the_records_around_it(busy: Program, visit: Visit) -> None:
    visitor = visit(busy)
    page = visitor.open("/console/history")
    linked = next(each for each in busy.history() if each["kind"] == "promise-broken")
    page.get_by_role("link", name=f"record {linked['number']}").click()
    page.wait_for_url(f"**/console/history?at={linked['number']}")
    record = page.locator(".record[aria-current]")
    expect(record).to_have_count(1)
    expect(record).to_be_in_viewport()
    expect(record).to_be_focused()
    expect(record).to_contain_text("promise broken")
    page.get_by_role("link", name="Show newest records").click()
    newest = page.locator(".record").first
    expect(newest).to_contain_text(f"record {busy.history()[-1]['number']}")
    gone = visitor.open("/console/history?at=999999")
    expect(gone.get_by_text("Record 999999 is not available")).to_be_visible()


def test_an_export_equals_the_file_of_the_command(busy: Program, visit: Visit, tmp_path: Path) -> None:
    page = visit(busy).open("/console/history?kind=orders,promises")
    page.get_by_text("Export and commands").click()
    for button, form in (("Export CSV", "csv"), ("Export JSON lines", "jsonl")):
        with page.expect_download() as downloading:
            page.get_by_role("button", name=button).click()
        written = Path(downloading.value.path()).read_bytes()
        assert downloading.value.suggested_filename == f"history.{form}"
        expect(page.get_by_text(f"written to history.{form}")).to_be_visible()
        kinds = page.locator(".command code").last.inner_text().partition("history.csv ")[2].split()
        exported = run(
            tmp_path,
            *("history", "export", "-o", f"from-command.{form}", *kinds),
            environment={"FOREWARN_SERVER": busy.operators},
        )
        assert exported.returncode == 0, exported.stderr
        assert written == (tmp_path / f"from-command.{form}").read_bytes()
        assert b"promise-broken" in written
        assert b"event-scheduled" not in written


def test_a_history_opened_while_the_server_is_down_appears_after_the_restart(
    server: Program, visit: Visit
) -> None:
    visitor = visit(server)
    visitor.expects("^net::ERR_")
    page = visitor.open("/console/fleet")
    expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
    server.kill()
    go(page, "/history")
    expect(page.get_by_role("alert")).to_have_text("the server does not respond")
    server.start()
    expect(page.locator(".record")).not_to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    server.post("/v1/hosts/host-1/cordon")
    expect(page.locator(".record").first).to_contain_text("order done")
