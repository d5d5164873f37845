"""Rollouts in the console: plan, dry run, start, progress and abort."""

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.helpers.console import accessibility
from tests.helpers.console.console_fixtures import Serve, Visit, let_in
from tests.helpers.programs.process import Program
from tests.system.console.acting import expect_command

HOSTS = ("host-1", "host-2", "host-3")
# Two projects on one host each. One of them allows maintenance only at night.
WINDOWS = """
[projects.shop]
time-zone = "Europe/Berlin"
blackout = ["2027-03-05"]
[[projects.shop.windows]]
days = ["mon", "tue", "wed"]
start = "22:00"
length = "4h"
[projects.lab]
[defaults]
driver = "simulated"
[hosts.host-1]
[hosts.host-2]
[[machines]]
name = "till"
project = "shop"
host = "host-1"
[[machines]]
name = "probe"
project = "lab"
host = "host-2"
"""


def _enable(program: Program) -> None:
    """Enable scheduled events for every group, so that rollouts give notice."""
    for number in range(10, 26):
        program.guest(f"127.0.1.{number}").poll()


def _begin(program: Program, **terms: object) -> str:
    rollout = program.post("/v1/rollouts", json={"hosts": list(HOSTS), "action": "reboot", **terms})[
        "rollout"
    ]
    return str(rollout["id"])


def _waves(page: Page) -> Locator:
    return page.locator("table.waves tbody tr")


def _press_until(page: Page, key: str, wanted: Locator) -> None:
    """Press a key until a control has the focus."""
    for _ in range(60):
        if wanted.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} never reaches {wanted}")


def test_a_rollout_is_planned_and_started_by_keyboard_alone(server: Program, visit: Visit) -> None:
    _enable(server)
    page = visit(server).open("/console/rollouts")
    _press_until(page, "Tab", page.get_by_role("link", name="Plan a rollout").first)
    page.keyboard.press("Enter")
    expect(_waves(page)).to_have_count(3)
    _press_until(page, "Tab", page.get_by_label("Action"))
    page.keyboard.press("ArrowDown")
    _press_until(page, "Tab", page.get_by_label("Gap between waves"))
    page.keyboard.type("1h30m")
    _press_until(page, "Tab", page.get_by_label("Reason", exact=True))
    page.keyboard.type("kernel 6.12")
    expect(page.get_by_text("3 waves, 4 h")).to_be_visible()
    assert parse_qs(urlsplit(page.url).query) == {
        "action": ["reboot"],
        "gap": ["1h30m"],
        "reason": ["kernel 6.12"],
    }
    assert server.all("rollouts") == []
    _press_until(page, "Tab", page.get_by_role("button", name="Start this rollout"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Reboot the machines of 3 hosts?")
    expect(dialog).to_contain_text(
        "machines of groups batch, shop, web, project default.3 waves, until about"
    )
    _press_until(page, "Tab", dialog.get_by_role("button", name="Start on 3 hosts"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=re.compile("^Rollout "))).to_be_visible()
    (rollout,) = server.all("rollouts")
    expect(page).to_have_url(f"{server.operators}/console/rollouts/{rollout['id']}")
    told = {key: rollout[key] for key in ("action", "gap_seconds", "reason", "hosts_at_once")}
    assert told == {"action": "reboot", "gap_seconds": 5400, "reason": "kernel 6.12", "hosts_at_once": 1}


def test_the_dry_run_shows_the_maintenance_windows(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=WINDOWS)
    page = visit(server).open("/console/rollouts/new?action=reboot")
    windows = page.get_by_role("region", name="Maintenance windows")
    expect(windows).to_contain_text(re.compile("mon.wed 22:00 for 4 h"))
    expect(windows).to_contain_text("never on 2027-03-05")
    expect(windows).to_contain_text("Europe/Berlin")
    expect(_waves(page)).to_have_count(2)
    expect(_waves(page).nth(1)).to_contain_text("host-1")
    expect(_waves(page).nth(1).locator(".wave-bar[data-kind=work]")).to_have_count(1)
    expect(page.get_by_role("region", name="Waiting for")).to_contain_text(
        "host-1: outside the window of project shop, which opens 2027-03-01 21:00:00"
    )
    page.get_by_text("Selected hosts").click()
    page.get_by_role("checkbox", name="host-2").check()
    expect(_waves(page)).to_have_count(1)
    expect(windows).to_contain_text("lab: no windows")
    assert server.all("rollouts") == []
    accessibility.check(page)


def test_the_form_shows_only_the_options_of_the_action(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    # Work in place on hosts with two update domains of a group is refused.
    visitor.expects(r"^4\d\d POST /v1/rollouts$")
    page = visitor.open("/console/rollouts/new?in-place=1")
    action, in_place = page.get_by_label("Action"), page.get_by_label("In place")
    expect(_waves(page)).to_have_count(3)
    expect(in_place).to_have_count(0)
    action.select_option("service")
    expect(in_place).to_be_checked()
    expect(page.get_by_label("Move machines back afterwards")).to_have_count(0)
    in_place.uncheck()
    expect(page.get_by_label("Move machines back afterwards")).to_be_visible()
    page.get_by_text("Equivalent command").click()
    expect(page.get_by_text("forewarn rollout plan --all --action service", exact=True)).to_be_visible()


def test_a_deadline_is_an_iso_date(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/rollouts/new")
    deadline = page.get_by_label("Deadline")
    deadline.fill("2027-03-02 22:00")
    deadline.press("Tab")
    page.wait_for_url("**deadline=2027-03-02T22%3A00%3A00Z")
    expect(_waves(page)).to_have_count(3)
    expect(deadline).to_have_value("2027-03-02 22:00")
    deadline.fill("tomorrow")
    deadline.press("Tab")
    expect(page.locator("#plan-deadline-problem")).to_contain_text("such as 2027-03-02 22:00")


def test_hosts_are_selected_by_the_url_and_by_search(server: Program, visit: Visit) -> None:
    server.post("/v1/hosts/host-3/cordon")
    page = visit(server).open("/console/rollouts/new?hosts=host-2,host-1&hosts_at_once=2")
    chosen = page.get_by_role("list", name="Selected hosts").locator(".name")
    expect(chosen).to_have_text(["host-2", "host-1"])
    page.get_by_label("Search hosts").fill("cordoned")
    found = page.get_by_role("list", name="Hosts found").get_by_role("listitem")
    expect(found).to_have_count(1)
    found.get_by_role("checkbox").check()
    expect(chosen).to_have_text(["host-2", "host-1", "host-3"])
    assert parse_qs(urlsplit(page.url).query)["hosts"] == ["host-2,host-1,host-3"]
    page.get_by_role("button", name="Remove host-1").click()
    expect(chosen).to_have_text(["host-2", "host-3"])
    page.get_by_text("Equivalent command").click()
    expect(page.get_by_text("forewarn rollout plan host-2 host-3 --hosts-at-once 2")).to_be_visible()


def test_a_selected_host_stays_selected_after_a_redraw(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/rollouts/new?hosts=host-2")
    box = page.get_by_role("list", name="Hosts found").get_by_role("checkbox", name="host-1")
    expect(box).not_to_be_checked()
    lost = box.evaluate(
        """async (box) => {
             const frame = () => new Promise(requestAnimationFrame);
             let lost = 0;
             for (let round = 0; round < 20; round++) {
               await frame();
               box.closest("fw-host-choice").redraw();
               const wanted = !box.checked;
               box.click();
               await frame();
               if (box.checked !== wanted) lost++;
             }
             return lost;
           }"""
    )
    assert lost == 0


def test_an_error_appears_at_its_field(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expects("400 POST /v1/rollouts", "404 POST /v1/rollouts")
    page = visitor.open("/console/rollouts/new?heartbeat=5m&driver=simulated")
    heartbeat = page.get_by_label("Heartbeat")
    expect(heartbeat).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#plan-heartbeat-problem")).to_contain_text("heartbeat_seconds: ")
    heartbeat.fill("5 minutes")
    expect(page.locator("#plan-heartbeat-problem")).to_contain_text("expected a time such as 90, 15m")
    heartbeat.fill("")
    expect(_waves(page)).to_have_count(3)
    page.goto(f"{server.operators}/console/rollouts/new?hosts=host-9")
    expect(page.locator("#hosts-problem")).to_have_text('host "host-9" does not exist')


def test_the_page_follows_a_rollout_to_its_end(server: Program, visit: Visit) -> None:
    _enable(server)
    id_ = _begin(server)
    page = visit(server).open(f"/console/rollouts/{id_}")
    expect(_waves(page)).to_have_count(3)
    expect(_waves(page).nth(0)).to_contain_text("announced")
    expect(_waves(page).nth(2)).to_contain_text("expected")
    expect(page.get_by_role("region", name="Waiting for")).to_contain_text("host-2: wave 2 waits for wave 1")
    server.advance(16 * 60)
    expect(page.get_by_role("progressbar", name="Hosts done")).to_have_attribute("aria-valuenow", "0")
    expect(_waves(page).nth(0)).to_contain_text("started")
    server.advance(24 * 3600)
    expect(page.get_by_role("progressbar", name="Hosts done")).to_have_attribute("aria-valuenow", "3")
    expect(page.locator("main")).to_contain_text("3 of 3 hosts done · 3 of 3 waves done")
    page.get_by_role("navigation", name="Path").get_by_role("link", name="Rollouts").click()
    over = page.get_by_role("table", name="Ended rollouts")
    expect(over.get_by_role("row").nth(1)).to_contain_text("3 of 3 hosts done")


def test_a_rollout_is_paused_resumed_and_aborted(server: Program, visit: Visit) -> None:
    _enable(server)
    id_ = _begin(server)
    page = visit(server).open(f"/console/rollouts/{id_}")
    page.get_by_role("button", name="Pause …").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the shop has a sale")
    expect_command(page.get_by_role("dialog"), f"rollout pause {id_[:8]} --reason 'the shop has a sale'")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator("main")).to_contain_text("the shop has a sale")
    page.get_by_role("button", name="Resume …").click()
    expect_command(page.get_by_role("dialog"), f"rollout resume {id_[:8]}")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(_waves(page).nth(0)).to_contain_text("announced")
    server.advance(16 * 60)
    expect(_waves(page).nth(0)).to_contain_text("started")
    page.get_by_role("button", name="Abort …").click()
    expect(page.get_by_role("dialog")).to_contain_text("Running steps finish on: host-1.")
    expect_command(page.get_by_role("dialog"), f"rollout abort {id_[:8]}")
    page.get_by_role("dialog").get_by_role("button", name="Abort").click()
    expect(page.get_by_role("region", name="Not done")).to_contain_text("host-3")
    server.advance(3600)
    expect(page.locator("main")).to_contain_text("0 of 3 hosts done, 1 skipped, 2 hosts not done")
    expect(page.locator("main")).not_to_contain_text("failure so far")
    expect(page.get_by_role("button", name="Resume …")).to_have_count(0)
    assert server.get(f"/v1/rollouts/{id_}")["rollout"]["state"] == "aborted"


def test_a_stale_page_cannot_undo_the_action_of_another_operator(server: Program, visit: Visit) -> None:
    secret = let_in(server, "olga", "operator")
    id_ = _begin(server)
    olga = visit(server).sign_in(secret, f"/console/rollouts/{id_}")
    ivan = visit(server)
    ivan.expects(f"409 POST /v1/rollouts/{id_}/resume")
    theirs = ivan.sign_in(let_in(server, "ivan", "operator"), f"/console/rollouts/{id_}")
    olga.get_by_role("button", name="Pause …").click()
    olga.get_by_role("dialog").get_by_role("button", name="Pause").click()
    theirs.get_by_role("button", name="Resume …").click()
    server.post(f"/v1/rollouts/{id_}/resume")
    server.post(f"/v1/rollouts/{id_}/pause", json={"reason": "not yet"})
    theirs.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(theirs.get_by_role("dialog").get_by_role("alert")).to_contain_text(
        f"rollout {id_} has changed since version 2: it is paused (version 4), paused by olga at "
    )
    assert server.get(f"/v1/rollouts/{id_}")["rollout"]["state"] == "paused"


def test_a_stale_plan_is_not_started(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/rollouts/new")
    page.get_by_role("button", name="Start this rollout").click()
    dialog = page.get_by_role("dialog", name="Freeze the machines of 3 hosts?")
    server.post("/v1/hosts/host-3/fail")
    expect(page.locator("main")).to_contain_text("2 waves")
    dialog.get_by_role("button", name="Start on 3 hosts").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The fleet has changed since this plan was made")
    assert server.all("rollouts") == []
    dialog.get_by_role("button", name="Do nothing").click()
    page.get_by_role("button", name="Start this rollout").click()
    page.get_by_role("button", name="Start on 2 hosts").click()
    expect(page.get_by_role("heading", level=1, name=re.compile("^Rollout "))).to_be_visible()


def test_a_rollout_over_hosts_of_another_rollout_is_refused_with_a_reason(
    server: Program, visit: Visit
) -> None:
    id_ = _begin(server)
    visitor = visit(server)
    visitor.expects("409 POST /v1/rollouts")
    page = visitor.open("/console/rollouts/new")
    expect(page.get_by_role("region", name="Warnings")).to_contain_text(f"are also in rollout {id_}")
    page.get_by_role("button", name="Start this rollout").click()
    page.get_by_role("button", name="Start on 3 hosts").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text(id_)
    page.get_by_role("button", name="Do nothing").click()
    page.get_by_text("More options", exact=True).click()
    page.get_by_label("Overlap another rollout").check()
    page.get_by_role("button", name="Start this rollout").click()
    page.get_by_role("button", name="Start on 3 hosts").click()
    expect(page.get_by_role("heading", level=1, name=re.compile("^Rollout "))).to_be_visible()
    assert len(server.all("rollouts")) == 2


def test_viewers_see_rollouts_and_cannot_start_one(server: Program, visit: Visit) -> None:
    let_in(server, "olga", "operator")
    id_ = _begin(server)
    page = visit(server).sign_in(let_in(server, "vera", "viewer"), f"/console/rollouts/{id_}")
    expect(_waves(page)).to_have_count(3)
    expect(page.get_by_role("button", name="Abort …")).to_have_count(0)
    page.goto(f"{server.operators}/console/rollouts/new")
    expect(page.locator("main")).to_contain_text("Only operators plan and start rollouts")


def test_an_unknown_rollout_shows_a_message(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expects("404 GET /v1/rollouts/")
    page = visitor.open("/console/rollouts/00000000-0000-4000-8000-000000000000")
    expect(page.get_by_role("heading", level=1)).to_have_text("Rollout not found")
    page.get_by_role("link", name="Show all rollouts").click()
    expect(page.get_by_role("heading", name="No rollouts yet")).to_be_visible()


def test_the_host_progress_shows_a_lost_host(server: Program, visit: Visit) -> None:
    terms = {"action": "service", "mode": "in-place", "host_work": "external", "together": "a new switch"}
    rollout = _begin(server, canary=1, max_failures="1", **terms)
    page = visit(server).open(f"/console/rollouts/{rollout}")
    progress = page.get_by_role("region", name="Host progress")
    expect(progress.get_by_role("link")).to_have_count(3)
    expect(progress.get_by_role("link", name="host-1: announced")).to_be_visible()
    expect(progress).to_contain_text("Wave 1, canaries")
    expect(page.get_by_text("0 failures so far; up to 1 allowed")).to_be_visible()
    server.advance(15 * 60)
    expect(progress.get_by_role("link", name="host-1: working")).to_be_visible()
    server.advance(60 * 60)
    expect(progress.get_by_role("link", name="host-1: lost")).to_be_visible()
    expect(page.get_by_text("1 host did not return: an operator must decide")).to_be_visible()
    (order,) = server.get(f"/v1/rollouts/{rollout}")["rollout"]["waves"][0]["orders"]
    server.post(f"/v1/orders/{order}/complete")
    expect(progress.get_by_role("link", name="host-1: done")).to_be_visible()
    # Tab reaches one host, the arrow keys the others.
    progress.get_by_role("link", name="host-1: done").focus()
    page.keyboard.press("ArrowDown")
    expect(progress.get_by_role("link", name=re.compile("^host-[23]: planned$")).first).to_be_focused()
    accessibility.check(page)
