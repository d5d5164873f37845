"""The fleet view: live tiles, filters in the URL, and the page of a machine."""

from playwright.sync_api import Locator, Page, expect

from tests.helpers.console.console_fixtures import Serve, Visit, let_in
from tests.helpers.programs.process import Program
from tests.system.console.acting import go

WEB_0 = "127.0.1.10"


def _tile(page: Page, name: str) -> Locator:
    return page.locator(f'.tile[data-machine$="/{name}"]')


def test_a_tile_follows_its_machine_through_an_event(server: Program, visit: Visit) -> None:
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


def test_a_tile_fits_the_longest_announcement(server: Program, visit: Visit) -> None:
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


def test_the_filters_are_in_the_url(server: Program, visit: Visit) -> None:
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


def test_a_folded_group_shows_counts_and_the_url_keeps_it_folded(calm: Program, visit: Visit) -> None:
    visitor = visit(calm)
    page = visitor.open("/console/fleet")
    page.get_by_role("button", name="web", exact=True).click()
    expect(_tile(page, "web-0")).to_have_count(0)
    sent = visitor.open(page.url.removeprefix(calm.operators))
    web = sent.get_by_role("region", name="web", exact=True)
    expect(web.get_by_role("group", name="Update domain 0")).to_contain_text("2 running")
    expect(_tile(sent, "db")).to_be_visible()


def test_a_tile_shows_a_card_with_details(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    server.post("/v1/machines/web-0/restart")
    page = visit(server).open("/console/fleet")
    card = page.get_by_role("tooltip")
    _tile(page, "web-0").hover()
    expect(card).to_contain_text("on host-1")
    expect(card).to_contain_text("not before in 15 m")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_the_keyboard_moves_between_tiles_and_opens_a_machine(calm: Program, visit: Visit) -> None:
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


def test_an_empty_fleet_shows_the_first_steps(serve: Serve, visit: Visit) -> None:
    empty = serve(fleet=None)
    page = visit(empty).open("/console/fleet")
    expect(page.get_by_text("forewarn fleet apply fleet.toml", exact=True)).to_be_visible()
    expect(page.get_by_text(f"export FOREWARN_SERVER={empty.operators}")).to_be_visible()
    # A machine needs a host.
    expect(page.get_by_role("button", name="Add a machine")).to_have_count(0)
    empty.call(
        "PUT", "/v1/fleet", json={"hosts": {"host-1": {}}, "machines": [{"name": "a", "host": "host-1"}]}
    )
    expect(_tile(page, "a")).to_be_visible()


def test_the_page_of_a_machine_shows_its_event_its_order_and_its_history(
    server: Program, visit: Visit
) -> None:
    server.guest(WEB_0).document()
    page = visit(server).open("/console/machines/web-0")
    expect(page.get_by_text("No events.")).to_be_visible()
    server.post("/v1/machines/web-0/restart", json={"reason": "a leak"})
    event = page.get_by_role("article", name="Event Reboot")
    expect(event).to_contain_text("Not before in 15 m")
    expect(event).to_contain_text("Waiting for approval by any of its machines")
    expect(page.get_by_role("article", name="Order restart")).to_contain_text("a leak")
    expect(page.locator("dt:text-is('Incarnation') + dd")).to_have_text("2")
    expect(page.locator("fw-recent-records").get_by_text("event announced")).to_be_visible()
    expect(page.get_by_role("link", name="host-1")).to_be_visible()


def test_an_unknown_machine_shows_a_message(calm: Program, visit: Visit) -> None:
    visitor = visit(calm)
    visitor.expects("404 GET /v1/machines/missing")
    page = visitor.open("/console/machines/missing")
    expect(page.get_by_role("alert")).to_contain_text("missing")
    page.get_by_role("main").get_by_role("link", name="Show the fleet").click()
    expect(_tile(page, "db")).to_be_visible()


def test_project_tokens_see_no_hosts(server: Program, visit: Visit) -> None:
    let_in(server, "ada", "operator")
    page = visit(server).sign_in(let_in(server, "tenant", "user", "default"), "/console/fleet")
    for address in ("/fleet", "/machines/web-0"):
        go(page, address)
        expect(page.get_by_role("main").get_by_text("web-0").first).to_be_visible()
        expect(page.get_by_role("main").get_by_text("host-")).to_have_count(0)
