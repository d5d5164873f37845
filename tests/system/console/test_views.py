"""Every view, on a fleet on which something of everything has happened: both themes, wide and on a phone.

Its pictures are those of docs/console: `make screenshots`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import accessibility, console_story
from tests.browsing import PHONE, SCREENS, THEMES, Screen, Theme
from tests.console_fixtures import Visit
from tests.console_story import Story

VIEWS = (
    *("fleet", "machine", "hosts", "host", "timeline", "event", "orders", "order"),
    *("rollouts", "plan", "rollout", "history", "promises"),
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with console_story.told(tmp_path_factory.mktemp("story")) as story:
        yield story


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_can_be_used_by_everybody(
    story: Story, visit: Visit, pictures: Path, view: str, theme: Theme
) -> None:
    visitor = visit(story.program, theme=theme)
    page = visitor.open(story.views[view])
    for screen in SCREENS:
        page.set_viewport_size({"width": screen.width, "height": screen.height})
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        visitor.settle(page)
        page.screenshot(path=pictures / f"{view}-{theme}-{screen.name}.png", animations="disabled")
        _check_width(page, screen)
    accessibility.check(page)


def _check_width(page: Page, screen: Screen) -> None:
    """Fail if a person at a phone would have to scroll the whole page sideways."""
    if screen is PHONE:
        assert page.evaluate("document.documentElement.scrollWidth") <= screen.width
