"""One search for everything, by a part of a name, an address or an id."""

from playwright.sync_api import Locator, Page, expect

from tests.helpers.console import accessibility
from tests.helpers.console.console_fixtures import Visit, let_in
from tests.helpers.programs.process import Program


def _search(page: Page, keys: str = "/") -> Locator:
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press(keys)
    return page.get_by_role("combobox", name="Search")


def _options(page: Page) -> Locator:
    return page.get_by_role("listbox").get_by_role("option")


def test_enter_opens_a_single_hit_of_every_kind(server: Program, visit: Visit) -> None:
    machine = server.get("/v1/machines/db")["machine"]
    over = server.post("/v1/machines/db/restart")["order"]["id"]
    server.advance(3600)
    server.guest("127.0.1.10").document()
    placed = server.post("/v1/machines/web-0/restart")
    event, order = placed["event"]["id"], placed["order"]["id"]
    page = visit(server).open("/console/hosts")
    for text, address in {
        machine["vm_id"][3:20].upper(): "/machines/db",
        "ST-2": "/hosts/host-2",
        "hop": "/fleet?group=shop",
        event[4:16]: f"/events/{event}",
        order.lower(): f"/orders/{order}",
        over: f"/orders/{over}",
    }.items():
        box = _search(page, "Control+k")
        box.fill(text)
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{server.operators}/console{address}")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_machine_is_found_by_its_address_while_something_else_is_typed(calm: Program, visit: Visit) -> None:
    address = calm.get("/v1/machines/web-3")["machine"]["address"]
    page = visit(calm).open("/console/fleet")
    page.get_by_label("Search by name or address").press("Control+k")
    page.get_by_role("combobox", name="Search").fill(address)
    expect(_options(page)).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("web-3")


def test_the_search_is_a_combobox_for_the_keyboard(calm: Program, visit: Visit) -> None:
    page = visit(calm).open("/console/fleet")
    box = _search(page)
    expect(box).to_be_focused()
    expect(box).to_have_attribute("aria-expanded", "false")
    box.press_sequentially("web-")
    expect(box).to_have_attribute("aria-expanded", "true")
    first = _options(page).first
    expect(first).to_have_attribute("aria-selected", "true")
    expect(first).to_contain_text("web-0")
    page.keyboard.press("ArrowDown")
    second = _options(page).nth(1)
    expect(second).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", second.get_attribute("id") or "?")
    accessibility.check(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("web-1")
    _search(page).fill("there is none of this")
    expect(page.get_by_text("No name, address or id contains “there is none of this”")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_tenant_finds_only_its_own(server: Program, visit: Visit) -> None:
    let_in(server, "ada", "operator")
    server.call("PUT", "/v1/projects/other", json={})
    answer = server.call("PUT", "/v1/machines/web-of-others", json={"host": "host-1", "project": "other"})
    assert answer.status_code == 201, answer.text
    page = visit(server).sign_in(let_in(server, "tenant", "user", "other"), "/console/fleet")
    box = _search(page)
    box.fill("web-")
    expect(_options(page)).to_have_count(1)
    expect(_options(page)).to_contain_text("web-of-others")
    box.fill("host-1")
    expect(page.get_by_text("No name, address or id contains “host-1”")).to_be_visible()
