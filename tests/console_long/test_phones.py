"""The console on a phone: accessibility, gestures, small tiles."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.console import accessibility, console_story
from tests.helpers.console.browsing import PHONE, THEMES
from tests.helpers.console.console_fixtures import Visit
from tests.helpers.console.console_story import VIEWS, Story
from tests.helpers.programs.process import Program


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with console_story.told(tmp_path_factory.mktemp("story")) as story:
        yield story


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_accessible_on_a_phone(story: Story, visit: Visit, view: str) -> None:
    visitor = visit(story.program, screen=PHONE)
    page = visitor.open(story.views[view])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        visitor.settle(page)
        accessibility.check(page)


def _spread(page: Page, place: str) -> None:
    """Pinch out with two fingers to twice their distance."""
    box = page.locator(place).bounding_box()
    assert box is not None
    fingers = page.context.new_cdp_session(page)
    # Near the top, because the middle may be below the screen.
    middle, y = box["x"] + box["width"] / 2, box["y"] + 100
    for kind, apart in (("touchStart", 40), ("touchMove", 50), ("touchMove", 80), ("touchEnd", None)):
        points = [] if apart is None else [{"x": middle + side * apart, "y": y} for side in (-1, 1)]
        points = [{**point, "id": number} for number, point in enumerate(points)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_two_fingers_zoom_the_timeline(story: Story, visit: Visit) -> None:
    page = visit(story.program, screen=PHONE).open("/console/timeline?span=6h")
    expect(page.locator(".timeline .bar a")).not_to_have_count(0)
    _spread(page, ".timeline-lanes")
    page.wait_for_url("**from=**")
    query = parse_qs(urlsplit(page.url).query)
    from_, to = (datetime.fromisoformat(query[end][0]) for end in ("from", "to"))
    assert timedelta(hours=2) < to - from_ < timedelta(hours=4)


def test_dense_tiles_keep_their_names_for_screen_readers(server: Program, visit: Visit) -> None:
    page = visit(server, screen=PHONE).open("/console/fleet")
    page.get_by_role("button", name="Search and filters").click()
    page.get_by_label("Density").select_option("dense")
    box = page.locator('.tile[data-machine$="/web-0"]').bounding_box()
    assert box is not None
    assert box["width"] <= 24
    expect(page.get_by_role("link", name="web-0 running")).to_be_visible()
