"""A fleet with more machines than the console reads at once."""

from playwright.sync_api import expect

from tests.helpers.console.console_fixtures import Serve, Visit


def _large_fleet(groups: int, machines: int) -> str:
    """Write a fleet file."""
    lines = ["[hosts.host-1]"]
    for group in range(groups):
        lines += [f"[groups.group-{group}]", 'kind = "scale-set"', "update-domains = 2"]
    for number in range(machines):
        lines += [
            "[[machines]]",
            f'name = "vm-{number:05}"',
            f'group = "group-{number % groups}"',
            f"update-domain = {number % 2}",
            'host = "host-1"',
        ]
    return "\n".join(lines)


def test_a_large_fleet_opens_folded_and_is_searched_on_the_server(serve: Serve, visit: Visit) -> None:
    page = visit(serve(fleet=_large_fleet(4, 3100))).open("/console/fleet")
    expect(page.get_by_role("button", name="3,100 running")).to_be_visible()
    expect(page.locator(".tile[data-machine]")).to_have_count(0)
    page.get_by_role("button", name="group-1", exact=True).click()
    expect(page.locator(".tile[data-machine]")).to_have_count(775)
    page.get_by_label("Search by name or address").fill("M-0003")
    expect(page.locator(".tile[data-machine]")).to_have_count(10)


def test_a_search_finds_everything_of_a_large_fleet(serve: Serve, visit: Visit) -> None:
    page = visit(serve(fleet=_large_fleet(4, 3100))).open("/console/fleet")
    expect(page.get_by_role("button", name="3,100 running")).to_be_visible()
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search")
    # This text is part of addresses, not of names.
    box.fill(".")
    expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text(
        "No name, address or id contains"
    )
    box.fill("M-03099")
    # Press Enter before the server answers.
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("vm-03099")
