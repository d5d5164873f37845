"""A tab that stays open: another tab freezes, or the server gets a newer console."""

from playwright.sync_api import Route, expect

from tests.helpers.console.console_fixtures import Visit
from tests.helpers.programs.process import Program

# All outcomes of a call that is open while the server stops.
AWAY = "^net::ERR_"


def test_a_tab_takes_the_stream_from_a_frozen_one(server: Program, visit: Visit) -> None:
    visitor = visit(server, is_first=True)  # the faked clock stays with the profile
    streams: list[str] = []
    visitor.watch(lambda request: streams.append(request.url) if "/v1/stream" in request.url else None)
    first, second = (visitor.open("/console/history") for _ in range(2))
    expect(second.get_by_text("live", exact=True)).to_be_visible()
    second.clock.install()
    second.reload()
    expect(second.get_by_text("live", exact=True)).to_be_visible()
    assert len(streams) == 1
    second.clock.fast_forward("01:00")
    server.post("/v1/holds", json={"reason": "an alarm"})
    for tab in (first, second):
        expect(tab.locator("fw-hold-bar")).to_contain_text("an alarm")
    assert len(streams) == 2


def test_a_server_with_a_newer_console_offers_a_reload(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expects(AWAY)
    page = visitor.open("/console/history")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.evaluate("window.isSame = true")
    page.route("**/console/", lambda route: route.fulfill(body="<script src=/console/assets/new/app.js>"))
    server.restart()
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert page.evaluate("window.isSame") is None


def test_stream_retries_back_off_and_respect_retry_after(server: Program, visit: Visit) -> None:
    visitor = visit(server, is_first=True)
    visitor.expects("503")
    page = visitor.open("/console/history")
    page.clock.install()
    asked: list[str] = []
    headers = {"Retry-After": "40"}

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=503, headers=headers, json={"error": {"code": "Unavailable", "message": "busy"}})

    page.route("**/v1/stream*", refuse)
    page.reload()
    expect(page.locator("fw-link-banner")).to_contain_text("Busy")
    page.clock.run_for(30_000)
    assert len(asked) == 1
    headers.clear()
    page.clock.run_for(15_000)
    expect(page.locator("fw-link-banner")).to_contain_text("Busy")
    before = len(asked)
    for _ in range(60):
        page.clock.run_for(1_000)
    assert 3 < len(asked) - before < 20
    page.unroute("**/v1/stream*")
    page.clock.run_for(15_000)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
