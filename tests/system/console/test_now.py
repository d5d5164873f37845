"""The strip at the top of the fleet view. Only failures and broken promises are red."""

from playwright.sync_api import Locator, Page, expect

from tests.helpers.console import accessibility
from tests.helpers.console.console_fixtures import Serve, Visit, let_in
from tests.helpers.programs.process import Program
from tests.system.console.acting import go

WEB_0 = "127.0.1.10"
# The timeline has a hatch pattern for every tone.
RED = 'main [data-tone="danger"]:not(pattern)'


def _part(page: Page, kind: str) -> Locator:
    return page.get_by_role("region", name="Now").locator(f'[data-kind="{kind}"]')


def test_a_calm_fleet_shows_that_nothing_needs_a_person(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/fleet")
    now = page.get_by_role("region", name="Now")
    expect(now).to_contain_text("Nothing needs you.")
    expect(now).to_contain_text("No event is announced.")
    server.guest(WEB_0).document()
    server.post("/v1/hosts/host-1/degrade")
    expect(now).to_contain_text("The next event starts in 7 d")


def test_a_planned_restart_is_not_red_and_a_failed_host_is(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/fleet")
    server.guest(WEB_0).document()
    event = server.post("/v1/machines/web-0/restart")["event"]["id"]
    expect(_part(page, "soon")).to_contain_text("1 starting in 15 min")
    expect(_part(page, "soon").get_by_role("link", name="Reboot web-0")).to_be_visible()
    server.post(f"/v1/events/{event}/approve")
    expect(page.locator('.tile[data-machine$="/web-0"]')).to_have_attribute("data-tone", "restart")
    for address in ("/timeline", f"/events/{event}", "/orders", "/hosts", "/history", "/fleet"):
        go(page, address)
        expect(page.get_by_text("Loading")).to_have_count(0)
        expect(page.locator(RED)).to_have_count(0)

    server.post("/v1/hosts/host-3/fail", json={"reason": "its power supply"})
    expect(_part(page, "failed").get_by_role("link", name="host-3")).to_be_visible()
    expect(_part(page, "failed")).to_have_attribute("data-tone", "danger")
    expect(page.locator('a.fleet-count [data-tone="danger"]')).to_have_text("✕1 failed")
    accessibility.check(page)


def test_groups_with_problems_come_first(serve: Serve, visit: Visit) -> None:
    groups = "".join(
        f'[groups.{name}]\nkind = "availability-set"\nupdate-domains = 1\n'
        f'[[machines]]\nname = "{name}-0"\ngroup = "{name}"\nhost = "{host}"\n'
        for name, host in (("alpha", "one"), ("beta", "one"), ("zeta", "two"))
    )
    server = serve(fleet=f'[defaults]\ndriver = "simulated"\n[hosts.one]\n[hosts.two]\n{groups}')
    page = visit(server).open("/console/fleet")
    names = page.locator(".group .fold .name")
    expect(names).to_have_text(["alpha", "beta", "zeta"])
    server.post("/v1/hosts/two/fail", json={"reason": "smoke"})
    expect(names).to_have_text(["zeta", "alpha", "beta"])
    expect(page.get_by_role("region", name="zeta").locator(".group-head .badge")).to_have_text("✕failed")


def test_held_and_late_items_are_counted_with_links(server: Program, visit: Visit) -> None:
    server.guest(WEB_0).document()
    event = server.post("/v1/machines/web-0/restart")["event"]["id"]
    server.post("/v1/holds", json={"host": "host-1", "reason": "a power supply"})
    page = visit(server).open("/console/fleet")
    expect(_part(page, "held").get_by_role("link", name="host host-1")).to_be_visible()
    expect(_part(page, "late")).to_contain_text("0 late")
    server.advance(16 * 60)
    expect(_part(page, "late")).to_contain_text("1 late")
    late = _part(page, "late").get_by_role("button", name="late")
    late.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("note")).to_have_text(
        "The NotBefore of these events has passed, and they have not started."
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("note")).to_have_count(0)
    _part(page, "late").get_by_role("link", name="Reboot web-0").click()
    expect(page).to_have_url(f"{server.operators}/console/events/{event}")


def test_a_tenant_sees_what_is_late_of_its_own_and_no_host(server: Program, visit: Visit) -> None:
    let_in(server, "ada", "operator")
    server.post("/v1/hosts/host-3/fail", json={"reason": "smoke"})
    page = visit(server).sign_in(let_in(server, "tenant", "user", "default"), "/console/fleet")
    expect(page.get_by_role("region", name="Now")).to_be_visible()
    expect(page.get_by_role("main").get_by_text("host-3")).to_have_count(0)
