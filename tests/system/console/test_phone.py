"""The console on a phone: machines first, collapsed filters, and readable names."""

from playwright.sync_api import Page, expect

from tests.helpers.console import accessibility
from tests.helpers.console.browsing import PHONE
from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs.process import Program

LONG = "payments-api-production-eu-west-14"
TWO_LONG = f"""
[hosts.host-1]
[groups.payments]
kind = "availability-set"
update-domains = 2
[[machines]]
name = "{LONG}"
group = "payments"
update-domain = 0
host = "host-1"
[[machines]]
name = "{LONG[:-1]}5"
group = "payments"
update-domain = 1
host = "host-1"
"""
# Whether the tile shows the end of a name and cuts its beginning.
IS_SHORTENED = """tile => {
    const [begin, end] = tile.querySelectorAll(".name span");
    const isInside = end.getBoundingClientRect().right <= tile.getBoundingClientRect().right;
    return isInside && begin.scrollWidth > begin.clientWidth;
}"""


def _top(page: Page, place: str) -> float:
    box = page.locator(place).first.bounding_box()
    assert box is not None
    return box["y"]


def test_the_first_machine_is_visible_at_once_and_counts_and_filters_unfold(
    calm: Program, visit: Visit
) -> None:
    page = visit(calm, screen=PHONE).open("/console/fleet")
    expect(page.locator(".tile[data-machine]")).to_have_count(14)
    assert _top(page, ".tile[data-machine]") < PHONE.height / 2
    search, add = page.get_by_label("Search by name"), page.get_by_role("button", name="Add a machine")
    expect(search).to_be_hidden()
    expect(add).to_be_hidden()
    filters = page.get_by_role("button", name="Search and filters")
    filters.click()
    expect(filters).to_have_attribute("aria-expanded", "true")
    search.fill("web-3")
    expect(page.locator(".tile[data-machine]")).to_have_count(1)
    expect(filters).to_contain_text("1 set")
    accessibility.check(page)
    filters.click()
    expect(search).to_be_hidden()
    page.get_by_role("button", name="Add and change").click()
    expect(page.get_by_role("button", name="14 running")).to_be_hidden()
    page.get_by_role("button", name="Counts").click()
    expect(page.get_by_role("button", name="14 running")).to_be_visible()
    expect(add).to_be_visible()


def test_a_long_name_keeps_its_end(serve: Serve, visit: Visit) -> None:
    page = visit(serve(fleet=TWO_LONG), screen=PHONE).open("/console/fleet")
    tile = page.get_by_role("link", name=f"{LONG} running")
    expect(tile.locator(".name")).to_have_text(LONG)
    assert tile.evaluate(IS_SHORTENED)
    accessibility.check(page)
