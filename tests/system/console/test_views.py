"""Rules for every view: a title, one heading, keyboard access, escaped names, and no findings by axe."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.console import accessibility, console_story
from tests.helpers.console.browsing import THEMES, wait_until
from tests.helpers.console.console_fixtures import Visit
from tests.helpers.console.console_story import VIEWS, Story
from tests.helpers.programs.process import Program

ROUTES = Path(__file__).parents[3] / "src/forewarn/console/web/shell/routes.js"
WIDTHS = (360, 768, 1440)
# Names allow letters, digits, dots, underscores and hyphens. Reasons and labels allow any text.
RENAMED = {"checkout-2": "machine-" + "x" * 56, "kvm01": "host-" + "y" * 59, "web": "group_" + "Z" * 58}
MARKUP = "<img src=x onerror=\"document.title='taken over'\"><b>bold</b>"
HOSTILE = f"{MARKUP} \N{RIGHT-TO-LEFT OVERRIDE}שלום {'long-' * 30}"
# The full history has too many links for a keyboard test.
ADDRESSES = {"history": "/console/history?kind=promises"}
# The most presses of Tab before a view counts as a keyboard trap.
MOST_STOPS = 400

# Labels of axes and charts.
AXIS_LABELS = ".tick, .wave-tick-label, .wave-fold-label, .promise-month, .promise-share, .promise-broken"
OVERLAPPING = """selector => {
    const labels = [...document.querySelectorAll(selector)].filter(each => each.checkVisibility());
    const boxes = labels.map(each => ({of: each.parentElement.closest('svg, th, td'), text: each.textContent,
        box: each.getBoundingClientRect()}));
    return boxes.flatMap((one, place) => boxes.slice(place + 1).filter(other => one.of === other.of
        && one.box.left < other.box.right && other.box.left < one.box.right
        && one.box.top < other.box.bottom && other.box.top < one.box.bottom)
        .map(other => `${one.text} and ${other.text}`));
}"""
# Commands may contain raw timestamps.
SENTENCES = """() => {
    const main = document.querySelector('main').cloneNode(true);
    for (const each of main.querySelectorAll('code')) each.remove();
    return main.textContent;
}"""

# A date field has several Tab stops.
GOES_ON = """() => {
    const at = document.activeElement;
    if (!at || at === document.body || (at !== last && reached.has(at))) return false;
    reached.add(at);
    last = at;
    return true;
}"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with console_story.told(tmp_path_factory.mktemp("story"), renamed=RENAMED, reason=HOSTILE) as story:
        yield story


def test_every_route_has_a_test(story: Story) -> None:
    routes = re.findall(r'path: "([^"]+)"', ROUTES.read_text())
    looked_at = {address.partition("?")[0].removeprefix("/console") for address in story.views.values()}
    for route in routes:
        pattern = re.sub(r"\{\w+\}", "[^/]+", route)
        assert route == "/" or any(re.fullmatch(pattern, each) for each in looked_at), route


# One test per view, because loading is most of the work.
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_accessible_and_escapes_names(story: Story, visit: Visit, view: str) -> None:
    visitor = visit(story.program)
    page = visitor.open(ADDRESSES.get(view) or story.views[view])
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page).to_have_title(re.compile(r"^[A-Z].+ · forewarn$"))
    expect(page.locator("[aria-busy=true], .shell-wait")).to_have_count(0)
    expect(page.locator("img").or_(page.locator("b", has_text="bold"))).to_have_count(0)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(page, f"document.documentElement.scrollWidth <= {width}")
        visitor.settle(page)
        assert page.evaluate(OVERLAPPING, AXIS_LABELS) == [], f"labels overlap at {width} pixels"
    assert re.findall(r"\d{4}-\d\d-\d\dT\d\d:[^ ]*", page.evaluate(SENTENCES)) == []
    expect(page.get_by_role("contentinfo")).to_have_text(re.compile("^All times are in UTC, except"))
    # As on a phone: tests/console_long.
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        visitor.settle(page)
        accessibility.check(page)
    _walk(page)


def _walk(page: Page) -> None:
    """Press Tab through the page, and fail if a visible control is not reached."""
    page.evaluate("document.activeElement?.blur()")
    page.evaluate("() => { window.reached = new Set(); window.last = null; }")
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if not page.evaluate(GOES_ON):
            break
    missed = page.evaluate(
        "() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]"
        ".filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled"
        " && each.closest('[tabindex=\"-1\"]') !== each && !reached.has(each)"
        # Tab reaches one radio button of a group, the arrow keys the others.
        " && each.type !== 'radio' && !each.closest('[role=grid], [role=toolbar], [role=tree]'))"
        ".map(each => each.outerHTML.slice(0, 200))"
    )
    assert not missed, "\n".join(missed)


def test_the_navigation_fits_a_laptop(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/fleet")
    page.set_viewport_size({"width": 1000, "height": 800})
    expect(page.get_by_role("link", name="Promises")).to_be_visible()
    tabs = page.locator(".shell-header nav")
    assert tabs.evaluate("nav => nav.scrollWidth - nav.clientWidth") == 0
