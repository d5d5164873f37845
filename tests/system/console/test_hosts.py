"""The host list and the page of a host: machines, effect of maintenance and reasons for waiting."""

import re
from pathlib import Path

from click.testing import CliRunner
from playwright.sync_api import expect

from forewarn.cli.main import app
from tests.helpers.console import accessibility
from tests.helpers.console.console_fixtures import Serve, Visit, begin_in_the_morning, let_in
from tests.helpers.programs.process import Program
from tests.helpers.service.harness import Service
from tests.helpers.service.listing_driver import IDS, Hypervisor
from tests.helpers.service.served import app_of, serving
from tests.system.console.acting import go


def test_each_host_shows_its_machines_and_its_order(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/hosts")
    line = page.get_by_role("row", name="host-1")
    expect(line.locator('[data-column="machines"]')).to_contain_text("5")
    expect(page.get_by_text("All hosts are simulated")).to_be_visible()
    server.guest("127.0.1.10").document()
    server.post("/v1/hosts/host-1/maintenance", json={"action": "reboot"})
    expect(line).to_contain_text("announced")
    server.post("/v1/hosts/host-2/maintenance", json={"action": "reboot"})
    expect(page.get_by_role("row", name="host-2")).to_contain_text("waits for domain")


def test_hosts_are_filtered_by_name_and_by_hold(server: Program, visit: Visit) -> None:
    server.post("/v1/holds", json={"host": "host-2", "reason": "a power supply"})
    visitor = visit(server)
    page = visitor.open("/console/hosts?state=held")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("row", name="host-2")).to_contain_text("held")
    page.get_by_role("button", name="Show all").click()
    page.get_by_label("Search by name").fill("-3")
    expect(page.locator("tbody th")).to_have_text(["host-3"])


RACKS = """
[defaults]
driver = "simulated"
[hosts.one]
labels = {rack = "b"}
resources = {memory = 32}
[hosts.two]
labels = {rack = "a"}
resources = {memory = 64}
[hosts.three]
[[machines]]
name = "m-0"
host = "one"
resources = {memory = 4}
[[machines]]
name = "m-1"
host = "three"
[[machines]]
name = "m-2"
host = "three"
"""


def test_hosts_have_one_line_each_and_the_url_keeps_the_sort_order(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=RACKS)
    visitor = visit(server)
    page = visitor.open("/console/hosts")
    names = page.locator("tbody th")
    expect(names).to_have_text(["one", "three", "two"])
    for button, wanted, sort in (
        ("Machines", ["three", "one", "two"], "-machines"),
        ("Machines", ["two", "one", "three"], "machines"),
        ("Rack", ["two", "one", "three"], "rack"),
        ("Free memory", ["two", "one", "three"], "-memory"),
    ):
        page.get_by_role("button", name=button).click()
        expect(names).to_have_text(wanted)
        expect(page).to_have_url(re.compile(f"sort={sort}$"))
    expect(page.get_by_role("columnheader", name="Free memory")).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_role("row", name=re.compile("^one"))).to_contain_text("28 of 32")
    server.post("/v1/hosts/three/maintenance", json={"action": "freeze"})
    page.get_by_label("Sort by").select_option("With an open order first")
    expect(names).to_have_text(["three", "one", "two"])
    sent = visitor.open(page.url.removeprefix(server.operators))
    expect(sent.locator("tbody th")).to_have_text(["three", "one", "two"])
    for width in (360, 768, 1440):
        sent.set_viewport_size({"width": width, "height": 800})
        heights = sent.locator("tbody tr").evaluate_all("rows => rows.map(row => row.offsetHeight)")
        assert max(heights) < 48, (width, heights)


def test_a_host_shows_the_effect_of_maintenance_before_it_is_ordered(calm: Program, visit: Visit) -> None:
    page = visit(calm).open("/console/hosts/host-1")
    plan = page.get_by_role("region", name="Effect of maintenance")
    expect(plan).to_contain_text("5 machines: 4 update domains of 3 groups, in 2 stages")
    expect(plan.get_by_role("row", name="shop UD 0: FrontEnd_IN_0")).to_be_visible()
    expect(plan.get_by_role("row", name="shop UD 1: Worker_IN_1")).to_be_visible()
    expect(plan).to_contain_text("never polled")
    # The dialog and the plan have the same default action.
    expect(plan.get_by_label("freeze")).to_be_checked()
    plan.get_by_label("redeploy").check()
    expect(page.get_by_role("link", name="Plan a rollout")).to_have_attribute(
        "href", "/console/rollouts/new?hosts=host-1&action=redeploy"
    )
    assert not calm.all("orders")


def test_a_host_shows_its_open_order_its_machines_and_its_ended_orders(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/hosts/host-1")
    expect(page.get_by_text("No open orders")).to_be_visible()
    server.post("/v1/hosts/host-1/maintenance", json={"action": "freeze", "reason": "a new kernel"})
    order = page.get_by_role("article", name="Order maintenance")
    expect(order).to_contain_text("a new kernel")
    server.advance(3600)
    expect(order).to_have_count(0)
    expect(page.get_by_text("Ended orders")).to_be_visible()
    expect(page.locator('.tile[data-look="running"]')).to_have_count(5)


def test_a_viewer_sees_the_stages_of_a_host_without_a_dry_run(server: Program, visit: Visit) -> None:
    let_in(server, "ada", "operator")
    page = visit(server).sign_in(let_in(server, "viewer", "viewer"), "/console/hosts/host-1")
    plan = page.get_by_role("region", name="Effect of maintenance")
    expect(plan.get_by_role("listitem").filter(has_text="shop UD 1: Worker_IN_1").first).to_be_visible()
    expect(plan.get_by_role("radio")).to_have_count(0)


def test_a_host_that_is_not_there_says_so(calm: Program, visit: Visit) -> None:
    page = visit(calm).open("/console/hosts/host-9")
    expect(page.get_by_text("There is no host host-9.")).to_be_visible()


def imported(folder: Path) -> None:
    """Make a store with a host and its machines, imported by a driver that no server has."""
    begin_in_the_morning(folder)
    hypervisor = Hypervisor()
    hypervisor.domains["kvm01"] = {IDS[0]: "vm-0"}
    service = Service(f"sqlite:///{folder / 'forewarn.db'}")
    service.more_drivers["blades"] = hypervisor
    service.wire(service.store)
    with serving(app_of(service)) as url:
        words = ["fleet", "import", "--from", "blades", "--host", "kvm01=blade://1", "--server", url]
        assert CliRunner().invoke(app, words).exit_code == 0
    service.close()


def test_imported_hosts_and_machines_show_their_source_and_an_unusable_driver(
    serve: Serve, visit: Visit
) -> None:
    page = visit(serve(store=imported)).open("/console/hosts")
    row = page.get_by_role("row", name=re.compile("kvm01"))
    for words in ("imported from blades", "unreachable", "driver blades is not installed"):
        expect(row).to_contain_text(words)
    go(page, "/fleet")
    stuck = page.get_by_role("region", name="Now").locator('[data-kind="stuck"]')
    expect(stuck.get_by_role("link", name="kvm01")).to_be_visible()
    go(page, "/hosts?sort=reached")
    row.get_by_role("link", name="kvm01").click()
    expect(page.locator(".page-title")).to_contain_text("unreachable")
    expect(page.locator(".notice", has_text="orders wait")).to_contain_text("driver blades is not installed")
    expect(page.get_by_role("definition").filter(has_text="imported from blades")).to_be_visible()
    go(page, "/machines/vm-0")
    expect(page.get_by_role("definition").filter(has_text="imported from blades")).to_be_visible()


def test_a_lost_host_shows_the_choices_and_other_orders_show_what_blocks_them(
    server: Program, visit: Visit
) -> None:
    placed = server.post(
        "/v1/hosts/host-3/service",
        json={"mode": "in-place", "host_work": "external", "together": "the rack is rewired"},
    )
    server.post("/v1/hosts/host-1/service")
    page = visit(server).open("/console/hosts/host-1")
    waits = page.get_by_role("article", name="Order service")
    (web,) = (event for event in placed["events"] if event["group"] == "web")
    blocking = waits.get_by_role("listitem").filter(has_text="web-2").last
    expect(blocking.get_by_role("link", name=web["id"][:8])).to_be_visible()
    expect(blocking.get_by_role("link", name="host-3")).to_be_visible()
    blocking.get_by_role("link", name="host-3").click()
    expect(page.get_by_text("Cordoned for order")).to_be_visible()
    server.advance(15 * 60)
    server.advance(60 * 60)
    lost = page.get_by_role("region", name="Host lost: choose what to do")
    expect(lost.get_by_text("forewarn host fail host-3")).to_be_visible()
    accessibility.check(page)
    lost.get_by_role("button", name="Wait longer …").click()
    page.get_by_role("dialog").get_by_role("button", name="Give host-3 more time").click()
    expect(lost).to_have_count(0)
    assert server.get("/v1/hosts/host-3")["host"]["state"] == "cordoned"
