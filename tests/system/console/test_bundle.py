"""The console as a wheel has it: one module and one stylesheet, minified."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect

from tests.helpers.console.console_fixtures import Visit, begin_in_the_morning
from tests.helpers.programs import wheels
from tests.helpers.programs.process import Program, sample_fleet

MOST_REQUESTS = 10
MOST_BYTES = 200_000
# The bytes of all finished answers, with headers. The stream is never finished.
SENT = """
[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .reduce((sum, entry) => sum + entry.transferSize, 0)
"""


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server that runs from a wheel."""
    folder = tmp_path_factory.mktemp("bundled")
    begin_in_the_morning(folder)
    environment = {"PYTHONPATH": str(wheels.unpacked(folder))}
    with Program(folder, "--fleet", sample_fleet(folder), environment=environment) as program:
        yield program


def _assets(page: Page) -> list[str]:
    links = page.locator("head [src], head [href]").all()
    return [(link.get_attribute("src") or link.get_attribute("href") or "") for link in links]


def test_a_first_view_takes_few_requests_and_few_bytes(bundled: Program, visit: Visit) -> None:
    visitor = visit(bundled, is_first=True)
    asked: list[Request] = []
    visitor.watch(lambda request: asked.append(request))
    page = visitor.open("/console/fleet")
    expect(page.locator(".tile[data-machine]")).to_have_count(14)
    visitor.settle(page)
    urls = [request.url.removeprefix(bundled.operators) for request in asked]
    assert len(urls) <= MOST_REQUESTS, urls
    assert {path.rpartition("/")[2] for path in _assets(page)} == {"app.js", "app.css", "favicon.svg"}
    assert 50_000 < page.evaluate(SENT) <= MOST_BYTES


def test_every_view_is_in_the_bundle(bundled: Program, visit: Visit) -> None:
    page = visit(bundled).open("/console/hosts")
    for name in ("Timeline", "Orders", "Rollouts", "History", "Promises", "Fleet", "Hosts"):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
