"""The timeline: bars, pan and zoom by pointer and keyboard, and the table."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.helpers.console.console_fixtures import Visit, begin_in_the_morning
from tests.helpers.programs.process import Program, sample_fleet

WEB_0 = "127.0.1.10"
WEB_1 = "127.0.1.11"
WEB_2 = "127.0.1.12"


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server with an approved event, an event without notified machines, and a deferred event."""
    folder = tmp_path_factory.mktemp("busy")
    begin_in_the_morning(folder)
    fleet = sample_fleet(folder)
    fleet.write_text(f'{fleet.read_text()}\n[groups.web.policy]\ndefer = "10m"\n')
    with Program(folder, "--fleet", fleet) as program:
        program.guest(WEB_0).document()
        event = program.post("/v1/machines/web-0/restart")["event"]
        program.guest(WEB_0).document()
        program.advance(300)
        program.guest(WEB_0).approve(event["id"])
        program.advance(600)
        program.post("/v1/machines/web-1/freeze")
        program.advance(1800)
        event = program.post("/v1/machines/web-2/restart")["event"]
        program.advance(60)
        program.guest(WEB_2).defer(event["id"], seconds=300)
        yield program


def _bars(page: Page) -> Locator:
    return page.locator(".timeline .bar a")


def _names(page: Page) -> list[str]:
    return [re.sub(r"[:;].*", "", bar.get_attribute("aria-label") or "") for bar in _bars(page).all()]


def _query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def _range(page: Page) -> str:
    return page.locator(".timeline-range").inner_text()


def _sides(place: Locator, *selectors: str) -> list[list[list[float]]]:
    """Return the left and right sides of the elements that match, measured together."""
    sides = (
        "(place, selectors) => selectors.map(each => [...place.querySelectorAll(each)]"
        ".map(found => found.getBoundingClientRect()).map(({ left, right }) => [left, right]))"
    )
    found: list[list[list[float]]] = place.evaluate(sides, list(selectors))
    return found


def _overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _drag(page: Page) -> None:
    """Drag the future towards the middle."""
    box = page.locator(".timeline").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 900, box["y"] + box["height"] - 4)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + box["height"] - 4, steps=4)
    page.mouse.up()


def test_events_are_bars_with_promised_and_delivered_notice(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/timeline?span=6h")
    expect(_bars(page)).to_have_count(3)
    assert _names(page) == ["Reboot, finished", "Freeze, finished", "Reboot, announced"]
    approved = page.locator(".bar", has=page.get_by_role("link", name=re.compile("web-0 restarted")))
    expect(approved.locator(".mark-approval")).to_have_count(1)
    expect(approved.locator('.bar-delivered[data-tone="calm"]')).to_have_count(1)
    deferred = page.locator(".bar", has=page.get_by_role("link", name=re.compile("web-2 will restart")))
    expect(deferred.locator(".mark-deferral")).to_have_count(1)
    untold = page.get_by_role("link", name=re.compile("web-1 paused"))
    expect(untold).to_have_accessible_name(re.compile("15 m promised, 1 never notified"))
    expect(page.locator(".bar-label", has_text="✕ Freeze web-1 · 1 never notified")).to_be_visible()
    untold.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("1 never notified")
    untold.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Freeze: web-1 paused")


def test_the_notice_of_an_event_that_ended_early_ends_with_it(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/timeline?span=6h")
    early = page.locator(".bar", has=page.get_by_role("link", name=re.compile("web-0 restarted")))
    (promised,), (impact,) = _sides(early, ".bar-promised", ".bar-impact")
    assert promised[1] <= impact[1] + 1  # its line is a pixel wide
    expect(early.locator(".mark-not-before")).to_have_count(0)
    waiting = page.locator(".bar", has=page.get_by_role("link", name=re.compile("web-2 will restart")))
    expect(waiting.locator(".mark-not-before")).to_have_count(1)


def test_no_mark_covers_a_label(busy: Program, visit: Visit) -> None:
    # The deferral of 09:46 is near the left edge, where the label of a bar that fills the width begins.
    page = visit(busy).open("/console/timeline?from=2027-03-01T09:45:57Z&to=2027-03-01T09:47:00Z")
    expect(page.locator(".bar-label")).to_have_text("↻ Reboot web-2")
    (label,), (deferral,) = _sides(page.locator(".timeline"), ".bar-label", ".mark-deferral")
    assert not _overlap(label, deferral)
    page.get_by_role("button", name="6 h").click()
    expect(_bars(page)).to_have_count(3)
    (now,), ticks = _sides(page.locator(".timeline"), ".line.now b", ".timeline-axis .tick")
    assert len(ticks) > 5
    assert not [tick for tick in ticks if _overlap(tick, now)]
    line = page.locator(".line.now").bounding_box()
    assert line is not None
    assert line["width"] <= 3, "the line of now is too wide"


def test_new_events_clock_advances_and_coming_waves_appear_at_once(server: Program, visit: Visit) -> None:
    server.guest(WEB_1).document()
    page = visit(server).open("/console/timeline")
    expect(page.get_by_text("No events in this range")).to_be_visible()
    expect(page.get_by_text("appear here when they are announced")).to_be_visible()
    expect(page.get_by_text("forewarn host maintenance")).to_have_count(0)
    server.post("/v1/machines/web-1/restart")
    bar = page.get_by_role("link", name=re.compile("^Reboot, announced: web-1 will restart"))
    expect(bar).to_be_visible()
    expect(page.locator(".line.now")).to_have_text("now 09:00:00")
    server.advance(900)
    expect(page.locator(".line.now")).to_have_text("now 09:15:00")
    expect(page.get_by_role("link", name=re.compile("^Reboot, started: web-1 restarts"))).to_be_visible()
    server.advance(900)
    gone = page.get_by_role("link", name=re.compile("^Reboot, finished: web-1 restarted"))
    expect(gone).to_have_accessible_name(re.compile("ended 2027-03-01 09:16:30"))
    asked = {"hosts": ["host-1", "host-2"], "action": "freeze", "hosts_at_once": 1}
    rollout = server.post("/v1/rollouts", json=asked)["rollout"]["id"]
    wave = page.get_by_role("link", name=re.compile("^Wave 2 of rollout .* freeze of host-2"))
    expect(wave.locator(".wave-work")).to_have_count(1)
    expect(page.locator(".bar-label", has_text="wave 2: host-2")).to_be_visible()
    wave.focus()
    expect(page.get_by_role("tooltip")).to_contain_text("Expected times, not promises")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Rollout {rollout[:8]}")


def test_the_range_is_in_the_url_and_follows_pointer_and_keyboard(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/timeline?from=2027-03-01T08:50:00Z&to=2027-03-01T09:10:00Z")
    expect(_bars(page)).to_have_count(1)
    assert re.findall(r"\d\d:\d\d:\d\d", _range(page)) == ["08:50:00", "09:10:00"]
    page.get_by_role("button", name="24 h").click()
    expect(_bars(page)).to_have_count(3)
    expect(page.get_by_role("button", name="24 h")).to_have_attribute("aria-pressed", "true")
    _drag(page)
    expect(page).to_have_url(re.compile(r"/console/timeline\?from="))
    expect(page.get_by_role("button", name="Now")).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="6 h").click()
    expect(page).to_have_url(re.compile(r"timeline\?span=6h$"))
    expect(_bars(page)).to_have_count(3)
    page.get_by_role("region", name=re.compile("^Timeline with 3 events")).focus()
    before = _range(page)
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile(r"from=2027-03-01T.*&to=2027-03-01T"))
    assert _range(page) != before
    for key, span in (("n", "6h"), ("+", "14400s"), ("-", "6h")):
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(rf"timeline\?span={span}$"))
    page.get_by_role("link", name=re.compile("^Reboot, announced")).focus()
    expect(page.get_by_role("tooltip")).to_contain_text("web-2 will restart")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("link", name=re.compile("^Freeze, finished"))).to_be_focused()
    page.keyboard.press("Home")
    expect(page.get_by_role("link", name=re.compile("^Reboot, finished"))).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Reboot: web-0 restarted")


def test_the_table_shows_the_same_events(busy: Program, visit: Visit) -> None:
    page = visit(busy).open("/console/timeline?span=6h")
    expect(_bars(page)).to_have_count(3)
    page.get_by_role("button", name="Show as a table").click()
    assert _query(page)["as"] == ["table"]
    rows = page.get_by_role("table").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("waiting for approval by any of its machines")
    expect(rows.nth(2)).to_contain_text("notified")
    expect(rows.nth(0).locator("[data-label='Notice']")).to_have_text(re.compile(r"^…\s*\d+ m promised$"))
    expect(rows.nth(0).locator("[data-label='Not before']")).to_contain_text("in 19 m")
    expect(rows.nth(2).locator("[data-label='Not before']")).to_contain_text("ended")
    page.get_by_label("Search events").fill("web-1")
    expect(rows).to_have_count(1)
    assert _query(page)["q"] == ["web-1"]
