"""What axe finds on every view as a phone shows it, on a fleet with something of everything."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests import accessibility, console_story
from tests.browsing import PHONE, THEMES
from tests.console_fixtures import Visit
from tests.console_story import VIEWS, Story


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with console_story.told(tmp_path_factory.mktemp("story")) as story:
        yield story


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_can_be_used_by_everybody_on_a_phone(story: Story, visit: Visit, view: str) -> None:
    visitor = visit(story.program, screen=PHONE)
    page = visitor.open(story.views[view])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        visitor.settle(page)
        accessibility.check(page)
