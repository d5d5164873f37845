"""Screenshots of every view, for `make screenshots`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.helpers.console import console_story
from tests.helpers.console.browsing import SCREENS, THEMES
from tests.helpers.console.console_fixtures import Visit
from tests.helpers.console.console_story import VIEWS, Story


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with console_story.told(tmp_path_factory.mktemp("story"), has_same_ids=True) as story:
        yield story


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Return the folder for screenshots: that of the documentation for `make screenshots`."""
    folder = Path(os.environ.get("FOREWARN_SCREENSHOTS") or tmp_path / "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_screenshots(story: Story, visit: Visit, pictures: Path, view: str) -> None:
    for theme in THEMES:
        visitor = visit(story.program, theme=theme)
        page = visitor.open(story.views[view])
        for screen in SCREENS:
            page.set_viewport_size({"width": screen.width, "height": screen.height})
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            visitor.settle(page)
            page.screenshot(path=pictures / f"{view}-{theme}-{screen.name}.png", animations="disabled")
