"""The fleet as people see it: tiles that change, filters in the address, a machine's page."""

from playwright.sync_api import Locator, Page, expect

from tests.helpers.console.console_fixtures import Serve, Visit, let_in
from tests.helpers.programs.process import Program
from tests.system.console.acting import go

WEB_0 = "127.0.1.10"


def _tile(page: Page, name: str) -> Locator:
    return page.locator(f'.tile[data-machine$="/{name}"]')


def test_a_tile_says_what_is_announced_approved_and_done_to_its_machine_as_it_happens(
    server: Program, visit: Visit
) -> None:
    server.guest(WEB_0).document()
    page = visit(server).open("/console/fleet")
    tile = _tile(page, "web-0")
    expect(tile).to_have_attribute("data-look", "running")
    event = server.post("/v1/machines/web-0/restart")["event"]
    expect(tile).to_have_attribute("data-look", "announced")
    expect(page.get_by_role("link", name="web-0 Reboot announced")).to_be_visible()
    server.post(f"/v1/events/{event['id']}/approve")
    expect(tile).to_have_attribute("data-look", "restarting")
    expect(page.get_by_role("button", name="1 restarting")).to_be_visible()
    server.advance(600)
    expect(tile).to_have_attribute("data-look", "running")


def test_a_tile_has_room_for_the_longest_words_of_an_announcement(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    server.post("/v1/machines/web-0/redeploy")
    words = _tile(visit(server).open("/console/fleet"), "web-0").locator(".tile-state")
    expect(words).to_have_text("Redeploy announced")
    for longest in ("Redeploy announced", "Terminate announced"):
        words.evaluate("(words, text) => (words.textContent = text)", longest)
        cut = words.evaluate("(words) => words.scrollWidth - words.clientWidth")
        assert cut <= 0, f"{longest}: {cut} pixels are cut off"


def test_groups_are_rows_and_their_update_domains_columns(calm: Program, visit: Visit) -> None:
    page = visit(calm).open("/console/fleet")
    web = page.get_by_role("region", name="web", exact=True)
    expect(web.get_by_role("group")).to_have_count(3)
    first = web.get_by_role("group", name="Update domain 0")
    expect(first.locator(".tile .name")).to_have_text(["web-0", "web-3"])
    alone = page.get_by_role("region", name="Standalone machines of default")
    expect(alone.locator(".tile .name")).to_have_text(["db"])


def test_what_is_shown_stands_in_the_address(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    server.post("/v1/machines/web-0/restart")
    visitor = visit(server)
    page = visitor.open("/console/fleet")
    page.get_by_label("Search by name or address").fill("web")
    page.get_by_label("State", exact=True).select_option("touched")
    expect(page.locator(".tile[data-machine]")).to_have_count(1)
    sent = visitor.open(page.url.removeprefix(server.operators))
    expect(sent.locator(".tile[data-machine] .name")).to_have_text(["web-0"])
    sent.get_by_role("button", name="Show all").click()
    expect(sent.locator(".tile[data-machine]")).to_have_count(14)


def test_a_folded_group_shows_counts_and_stays_folded_for_who_gets_the_address(
    calm: Program, visit: Visit
) -> None:
    visitor = visit(calm)
    page = visitor.open("/console/fleet")
    page.get_by_role("button", name="web", exact=True).click()
    expect(_tile(page, "web-0")).to_have_count(0)
    sent = visitor.open(page.url.removeprefix(calm.operators))
    web = sent.get_by_role("region", name="web", exact=True)
    expect(web.get_by_role("group", name="Update domain 0")).to_contain_text("2 running")
    expect(_tile(sent, "db")).to_be_visible()


def test_a_tile_that_is_pointed_at_or_focused_tells_more(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    server.post("/v1/machines/web-0/restart")
    page = visit(server).open("/console/fleet")
    card = page.get_by_role("tooltip")
    _tile(page, "web-0").hover()
    expect(card).to_contain_text("on host-1")
    expect(card).to_contain_text("not before in 15 m")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_the_keyboard_alone_goes_from_tile_to_tile_and_opens_a_machine(calm: Program, visit: Visit) -> None:
    page = visit(calm).open("/console/fleet")
    page.get_by_role("button", name="web", exact=True).focus()
    page.keyboard.press("Tab")
    expect(_tile(page, "web-0")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(_tile(page, "web-3")).to_be_focused()
    page.keyboard.press("End")
    expect(_tile(page, "web-5")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("web-5")


def test_a_first_visit_to_an_empty_fleet_says_what_to_do_next(serve: Serve, visit: Visit) -> None:
    empty = serve(fleet=None)
    page = visit(empty).open("/console/fleet")
    expect(page.get_by_text("forewarn fleet apply fleet.toml", exact=True)).to_be_visible()
    expect(page.get_by_text(f"export FOREWARN_SERVER={empty.operators}")).to_be_visible()
    # Without a host it would be refused.
    expect(page.get_by_role("button", name="Add a machine")).to_have_count(0)
    empty.call(
        "PUT", "/v1/fleet", json={"hosts": {"host-1": {}}, "machines": [{"name": "a", "host": "host-1"}]}
    )
    expect(_tile(page, "a")).to_be_visible()


def test_a_machine_has_a_page_with_its_event_its_order_and_its_history(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    page = visit(server).open("/console/machines/web-0")
    expect(page.get_by_text("Nothing is announced to it.")).to_be_visible()
    server.post("/v1/machines/web-0/restart", json={"reason": "a leak"})
    event = page.get_by_role("article", name="Event Reboot")
    expect(event).to_contain_text("Not before in 15 m")
    expect(event).to_contain_text("Waiting for approval by any of its machines")
    expect(page.get_by_role("article", name="Order restart")).to_contain_text("a leak")
    expect(page.locator("dt:text-is('Incarnation') + dd")).to_have_text("2")
    expect(page.locator("fw-recent-records").get_by_text("event scheduled")).to_be_visible()
    expect(page.get_by_role("link", name="host-1")).to_be_visible()


def test_a_machine_that_is_not_there_says_so(calm: Program, visit: Visit) -> None:
    visitor = visit(calm)
    visitor.expects("404 GET /v1/machines/nobody")
    page = visitor.open("/console/machines/nobody")
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    page.get_by_role("main").get_by_role("link", name="Show the fleet").click()
    expect(_tile(page, "db")).to_be_visible()


def test_tenants_are_shown_no_host(server: Program, visit: Visit) -> None:
    let_in(server, "ada", "operator")
    page = visit(server).sign_in(let_in(server, "tenant", "user", "default"), "/console/fleet")
    for address in ("/fleet", "/machines/web-0"):
        go(page, address)
        expect(page.get_by_role("main").get_by_text("web-0").first).to_be_visible()
        expect(page.get_by_role("main").get_by_text("host-")).to_have_count(0)
