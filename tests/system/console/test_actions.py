"""Every verb, done on the page against a real service: its question, its fields, its command, its outcome."""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.helpers.console import accessibility
from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs.process import Program
from tests.system.console.acting import answer, expect_command, fill, go, press

OUTSIDE = """
[defaults]
driver = "external"
[hosts.host-1]
[hosts.host-2]
[[machines]]
name = "db-0"
host = "host-1"
address = "127.0.1.1"
[[machines]]
name = "db-1"
host = "host-2"
address = "127.0.1.2"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """An action of a user, and the equivalent command."""

    to: str
    label: str
    button: str
    command: str
    in_menu: bool = False
    fields: dict[str, str | bool] = field(default_factory=dict)
    typed: str = ""


MACHINES = [
    Deed(
        to="web-0",
        label="Restart",
        fields={"Reason": "it's wedged", "Now": True},
        button="Restart web-0",
        command=r"machine restart web-0 --reason 'it'\''s wedged' --now",
    ),
    Deed(to="web-1", label="Redeploy", button="Redeploy web-1", command="machine redeploy web-1"),
    Deed(
        to="web-4",
        label="Move",
        in_menu=True,
        fields={"To": "host-1", "Live": True},
        button="Move web-4",
        command="machine move web-4 --to host-1 --live",
    ),
    Deed(
        to="web-2",
        label="Freeze",
        in_menu=True,
        fields={"Reason": "try"},
        button="Freeze web-2",
        command="machine freeze web-2 --reason try",
    ),
    Deed(to="batch_0", label="Evict", in_menu=True, button="Evict batch_0", command="machine evict batch_0"),
    Deed(
        to="batch_1",
        label="Recommend rebalance",
        in_menu=True,
        button="Send the recommendation to batch_1",
        command="machine recommend-rebalance batch_1",
    ),
    Deed(
        to="web-3",
        label="Terminate",
        in_menu=True,
        button="Terminate web-3",
        command="machine terminate web-3",
    ),
]

DECLARATIONS = [
    Deed(
        to="web-4",
        label="Change",
        in_menu=True,
        fields={"Address": "127.0.3.3", "Size": "large", "Tags": "tier=front\nowner=shop"},
        button="Save",
        command="machine put web-4 --address 127.0.3.3 --size large --tag tier=front --tag owner=shop",
    ),
    Deed(
        to="web-5",
        label="Delete",
        in_menu=True,
        typed="web-5",
        button="Delete web-5",
        command="machine delete web-5",
    ),
]

HOSTS = [
    Deed(
        to="host-1",
        label="Maintenance",
        fields={
            "Action": "reboot",
            "Reason": "firmware",
            "Deadline": "2027-03-02T12:00",
            "Expected duration": "30m",
            "Driver": "external",
            "Heartbeat": "5m",
            "Emergency because": "smoke",
            "Emergency notice": "2m",
            "Treat update domains together because": "smoke",
        },
        typed="host-1",
        button="Start maintenance on host-1",
        command="host maintenance host-1 --action reboot --reason firmware --deadline 2027-03-02T12:00:00Z "
        "--takes 30m --together smoke --driver external --heartbeat 5m --emergency smoke --notice 2m",
    ),
    Deed(to="host-2", label="Cordon", button="Cordon host-2", command="host cordon host-2"),
    Deed(to="host-2", label="Uncordon", button="Uncordon host-2", command="host uncordon host-2"),
    Deed(
        to="host-2",
        label="Degrade",
        in_menu=True,
        fields={"Reason": "a bad fan"},
        button="Degrade host-2",
        command="host degrade host-2 --reason 'a bad fan'",
    ),
    Deed(
        to="host-3",
        label="Fail",
        in_menu=True,
        fields={"Reason": "fire", "Already fenced because": "burnt"},
        typed="host-3",
        button="Fail host-3",
        command="host fail host-3 --reason fire --fenced burnt",
    ),
    Deed(to="host-3", label="Restore", button="Restore host-3", command="host restore host-3"),
]


def do(page: Any, deed: Deed, view: str) -> None:
    go(page, f"/{view}/{deed.to}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(deed.to)
    dialog = press(page, deed.label, in_menu=deed.in_menu)
    expect(dialog.get_by_role("heading")).to_contain_text(deed.to)
    fill(dialog, deed.fields)
    if deed.typed:
        dialog.get_by_label("to confirm").fill(deed.typed)
    expect_command(dialog, deed.command)
    answer(dialog, deed.button)


def placed(server: Program) -> list[tuple[str, str]]:
    """The placed orders, by action and machine, in order."""
    return [(each["action"], each["machine"] or each["host"]) for each in reversed(server.all("orders"))]


def test_machines_can_be_ordered_about(serve: Serve, visit: Visit) -> None:
    server = serve(environment={"FOREWARN_GUEST_PREVIEW": "true"})
    page = visit(server).open("/console/fleet")
    for deed in MACHINES:
        do(page, deed, "machines")
    assert placed(server) == [(deed.command.split()[1], deed.to) for deed in MACHINES]
    assert server.all("orders")[-1]["reason"] == "it's wedged"
    go(page, "/history")
    server.advance(1800)
    do(
        page,
        Deed(to="batch_0", label="Start", button="Start batch_0", command="machine start batch_0"),
        "machines",
    )
    assert placed(server)[-1] == ("start", "batch_0")


def test_machines_are_added_changed_and_deleted(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    # Its page may look for the machine once more before it is left.
    visitor.expects("^404 GET /v1/machines/web-5$")
    page = visitor.open("/console/fleet")
    dialog = press(page, "Add a machine")
    fill(dialog, {"Name": "new-0", "Host": "host-1", "Address": "127.0.3.1", "Priority": "spot"})
    expect_command(dialog, "machine put new-0 --new --host host-1 --priority spot --address 127.0.3.1")
    answer(dialog, "Add")
    assert server.get("/v1/machines/new-0")["machine"]["priority"] == "spot"
    for deed in DECLARATIONS:
        do(page, deed, "machines")
    changed = server.get("/v1/machines/web-4")["machine"]
    assert (changed["address"], changed["size"], changed["tags"]) == (
        "127.0.3.3",
        "large",
        {"tier": "front", "owner": "shop"},
    )
    assert server.call("GET", "/v1/machines/web-5").status_code == 404


def test_hosts_are_added_changed_and_deleted(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    # The page of a host may ask for the plan of its maintenance in the moment when the host is deleted.
    visitor.expects("^400 PUT /v1/hosts/host-9$", "^404 POST /v1/rollouts$")
    page = visitor.open("/console/hosts")
    dialog = press(page, "Add a host")
    fill(dialog, {"Name": "host-9", "Driver": "external", "URI": "no uri"})
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("uri: expected a URI")
    fill(dialog, {"URI": "ssh://host-9/", "Resources": "vcpus=64x4\nram-gib=256", "Labels": "rack=7"})
    expect_command(
        dialog,
        "host put host-9 --new --driver external --uri ssh://host-9/ --resource vcpus=64x4 "
        "--resource ram-gib=256 --label rack=7",
    )
    answer(dialog, "Add")
    row = page.get_by_role("row", name=re.compile("host-9"))
    expect(row).to_contain_text("external")
    change = Deed(
        to="host-9",
        label="Change",
        in_menu=True,
        fields={"Concurrent driver calls": "2", "Resources": "vcpus=64x4", "Bare metal": True},
        button="Save",
        command="host put host-9 --at-once 2 --resource vcpus=64x4 --bare-metal",
    )
    do(page, change, "hosts")
    host = server.get("/v1/hosts/host-9")["host"]
    assert (host["at_once"], host["bare_metal"], host["labels"], host["source"]) == (
        2,
        True,
        {"rack": "7"},
        "put",
    )
    assert host["resources"] == {"vcpus": {"amount": 64, "ratio": 4}}
    delete = Deed(
        to="host-9",
        label="Delete",
        in_menu=True,
        typed="host-9",
        button="Delete host-9",
        command="host delete host-9",
    )
    do(page, delete, "hosts")
    expect(page.get_by_role("heading", level=1)).to_have_text("Hosts")
    expect(row).to_have_count(0)


def test_groups_are_added_changed_and_deleted(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/fleet")
    dialog = press(page.locator(".fleet-top"), "Add a group", in_menu=True)
    fill(dialog, {"Name": "cache", "Kind": "scale-set", "Update domains": "3", "Notice": "1h30m"})
    expect_command(dialog, "group put cache --new --kind scale-set --update-domains 3 --policy notice=1h30m")
    answer(dialog, "Add")
    group = page.get_by_role("region", name="cache")
    dialog = press(group, "Change", in_menu=True)
    fill(dialog, {"Notice": "2h", "Approve automatically": True})
    expect_command(dialog, "group put cache --policy notice=2h --policy auto-approve=true")
    answer(dialog, "Save")
    changed = server.get("/v1/groups/cache")["group"]
    assert (changed["kind"], changed["update_domains"]) == ("scale-set", 3)
    assert (changed["policy"]["notice"], changed["policy"]["auto_approve"]) == (7200, True)
    dialog = press(group, "Change", in_menu=True)
    expect(dialog.get_by_label("Notice", exact=True)).to_have_value("2h")
    dialog.get_by_role("button", name="Do nothing").click()
    dialog = press(group, "Delete", in_menu=True)
    expect_command(dialog, "group delete cache")
    answer(dialog, "Delete cache")
    expect(group).to_have_count(0)


def test_projects_are_added_changed_held_and_deleted(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/fleet")
    dialog = press(page.locator(".fleet-top"), "Add a project", in_menu=True)
    fill(dialog, {"Name": "lab", "Maintenance windows": "sat,sun 22:00 4h\n21:00 90m", "Rehearsals": True})
    expect_command(
        dialog, "project put lab --new --window 'sat,sun 22:00 4h' --window '21:00 90m' --rehearsal"
    )
    answer(dialog, "Add")
    page.locator("details.projects > summary").click()
    row = page.get_by_role("group", name="Projects").get_by_role("row", name=re.compile("lab"))
    expect(row).to_contain_text("21:00 1h30m")
    dialog = press(row, "Change", in_menu=True)
    days = "2027-12-24/2027-12-26\n2028-01-01"
    fill(dialog, {"Time zone": "Europe/Berlin", "Days without maintenance": days, "Rehearsals": False})
    expect_command(
        dialog,
        "project put lab --time-zone Europe/Berlin --blackout 2027-12-24/2027-12-26 --blackout 2028-01-01 "
        "--no-rehearsal",
    )
    answer(dialog, "Save")
    expect(row).to_contain_text("2027-12-24 to 2027-12-26, 2028-01-01")
    dialog = press(row, "Hold", in_menu=True)
    fill(dialog, {"Reason": "an audit"})
    answer(dialog, "Hold lab")
    expect(page.locator("fw-hold-bar")).to_contain_text("an audit")
    dialog = press(row, "Delete", in_menu=True)
    dialog.get_by_label("to confirm").fill("lab")
    expect_command(dialog, "project delete lab")
    answer(dialog, "Delete lab")
    expect(row).to_have_count(0)


def test_hosts_can_be_maintained_and_reported_on(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/fleet")
    for deed in HOSTS:
        do(page, deed, "hosts")
    assert placed(server) == [(deed.command.split()[1], deed.to) for deed in HOSTS]
    first = server.all("orders")[-1]
    assert (first["work"], first["driver"], first["heartbeat_seconds"], first["expected_seconds"]) == (
        "reboot",
        "external",
        300,
        1800,
    )
    assert (first["deadline"], first["emergency"], first["together"]) == (
        "2027-03-02T12:00:00Z",
        "smoke",
        "smoke",
    )


def test_events_are_cancelled_and_approved(server: Program, visit: Visit) -> None:
    server.guest("127.0.1.10").poll()
    first = server.post("/v1/hosts/host-1/maintenance", json={"action": "freeze"})
    page = visit(server).open(f"/console/events/{first['events'][0]['id']}")
    dialog = press(page, "Cancel")
    # The whole order is cancelled, with the events of other groups.
    for each in first["events"]:
        for name in each["resources"]:
            expect(dialog.locator(".touched")).to_contain_text(name)
    answer(dialog, "Cancel the order and all its events")
    assert server.get(f"/v1/orders/{first['order']['id']}")["order"]["state"] == "cancelled"
    events = server.post("/v1/hosts/host-1/maintenance", json={"action": "freeze"})["events"]
    [event] = [each for each in events if "web-0" in each["resources"]]
    go(page, f"/events/{event['id']}")
    dialog = press(page, "Approve")
    expect(dialog.locator(".touched")).to_contain_text("web-0")
    expect_command(dialog, f"event approve {event['id'][:8]}")
    answer(dialog, "Approve")
    assert server.get(f"/v1/events/{event['id']}")["event"]["approved"]


def test_orders_are_reported_on_retried_abandoned_and_cancelled(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=OUTSIDE)
    order = server.post("/v1/hosts/host-1/fail", json={})["order"]["id"]
    page = visit(server).open(f"/console/orders/{order}")

    def do_to(
        order: str, label: str, button: str, command: str, *, in_menu: bool = False, **fields: str
    ) -> str:
        go(page, f"/orders/{order}")
        dialog = press(page, label, in_menu=in_menu)
        fill(dialog, fields)
        expect_command(dialog, f"order {command}")
        answer(dialog, button)
        state: str = server.get(f"/v1/orders/{order}")["order"]["state"]
        return state

    short = order[:8]
    still, failed = "Report still running", "Report failed"
    assert do_to(order, still, still, f"heartbeat {short}", in_menu=True) == "started"
    said = f"fail {short} --reason 'no disk'"
    assert do_to(order, failed, failed, said, in_menu=True, Reason="no disk") == "failed"
    assert do_to(order, "Retry", "Retry", f"retry {short}") == "started"
    # First that its host is fenced; then where its machine is now, and that it is back.
    do_to(order, "Report done", "Report done", f"complete {short}")
    expect(page.get_by_role("row", name=re.compile("^fence"))).to_contain_text("done")
    assert server.call("PUT", "/v1/machines/db-0", json={"host": "host-2"}).status_code == 200
    do_to(order, "Report done", "Report done", f"complete {short}")
    assert [step["state"] for step in server.get(f"/v1/orders/{order}")["order"]["steps"]] == ["done"]
    other = server.post("/v1/machines/db-1/restart")["order"]["id"]
    server.post(f"/v1/orders/{other}/fail")
    assert do_to(other, "Abandon", "Abandon", f"abandon {other[:8]}") == "failed"
    server.guest("127.0.1.2").poll()
    last = server.post("/v1/machines/db-1/restart")["order"]["id"]
    assert do_to(last, "Cancel", "Cancel the order", f"cancel {last[:8]}") == "cancelled"


def test_the_red_button_holds_with_a_reason_and_the_bar_releases(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/history")
    hold = page.get_by_role("banner").get_by_role("button", name="Hold …")
    for reach, more, held in (
        ("all", {}, {"project": None, "host": None}),
        ("project", {"Project": "default"}, {"project": "default", "host": None}),
        ("host", {"Host": "host-1"}, {"project": None, "host": "host-1"}),
    ):
        hold.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Hold", exact=True).click()
        expect(dialog.get_by_text("Enter a value for Reason")).to_be_visible()
        assert server.get("/v1/holds")["holds"] == []
        fill(dialog, {"Reach": reach, **more, "Reason": "an alarm"})
        answer(dialog, "Hold")
        [made] = server.get("/v1/holds")["holds"]
        assert {"project": made["project"], "host": made["host"]} == held
        bar = page.locator("fw-hold-bar")
        expect(bar).to_contain_text("an alarm")
        bar.get_by_role("button", name="Release …").click()
        answer(page.get_by_role("dialog"), "Release")
        expect(bar).to_be_empty()
    assert server.get("/v1/holds")["holds"] == []


def test_what_is_held_while_nothing_can_be_saved_says_so_until_it_is(
    server: Program, visit: Visit, tmp_path: Path
) -> None:
    page = visit(server).open("/console/hosts/host-1")
    page.get_by_role("banner").get_by_role("button", name="Hold …").click()
    fill(page.get_by_role("dialog"), {"Reason": "a full disk"})
    bars = [page.locator("fw-hold-bar")]
    with closing(sqlite3.connect(tmp_path / "server-0" / "forewarn.db", isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")  # locks out other writers
        answer(page.get_by_role("dialog"), "Hold")
        bars.append(visit(server).open("/console/fleet").locator("fw-hold-bar"))
        for bar in bars:
            expect(bar).to_contain_text("a full disk (operator, now) in memory only, not saved yet")
        expect(page.get_by_role("main").locator(".notice")).to_contain_text(["in memory only", "simulated"])
        another.rollback()
    for bar in bars:
        expect(bar).not_to_contain_text("in memory only")
        expect(bar).to_contain_text("a full disk")


def test_a_manual_clock_is_turned_by_steps_and_a_fast_one_says_its_speed(serve: Serve, visit: Visit) -> None:
    server = serve()
    page = visit(server).open("/console/history")
    page.get_by_role("button", name="advance").click()
    page.get_by_role("button", name="+ 15 min").click()
    expect(page.locator("fw-clock-stepper time")).to_contain_text("09:15:00")
    page.get_by_role("button", name="Other …").click()
    dialog = page.get_by_role("dialog")
    fill(dialog, {"By": "soon"})
    dialog.get_by_role("button", name="Advance").click()
    expect(dialog.get_by_text("Enter a duration such as 90 (seconds), 15m, 1h30m or 7d")).to_be_visible()
    fill(dialog, {"By": "1h30m"})
    expect_command(dialog, "clock advance 1h30m")
    answer(dialog, "Advance")
    assert server.get("/v1/clock")["now"] == "2027-03-01T10:45:00Z"
    fast = visit(serve(clock="x60")).open("/console/history")
    expect(fast.locator("fw-clock-stepper")).to_contain_text("60 times as fast")


def test_a_refusal_is_shown_as_it_is_and_what_was_typed_stays(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expects("409 POST /v1/machines/web-0/restart")
    page = visitor.open("/console/machines/web-0")
    dialog = press(page, "Restart")
    dialog.get_by_label("Reason").fill("mine")
    server.guest("127.0.1.10").poll()
    first = server.post("/v1/machines/web-0/restart")["order"]["id"]
    dialog.get_by_role("button", name="Restart web-0").click()
    expect(dialog.get_by_role("alert")).to_have_text(
        f'machine "web-0" has order {first} (restart), which is announced: wait until it is done, '
        f"or `forewarn order cancel {first}` (409 Conflict)"
    )
    expect(dialog.get_by_label("Reason")).to_have_value("mine")


def test_a_double_click_does_it_once_and_tells_what_was_done(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/machines/web-0")
    dialog = press(page, "Restart")
    dialog.get_by_role("button", name="Restart web-0").dblclick()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("Restart web-0: order")
    [order] = server.all("orders")
    expect(toast.get_by_role("link", name=order["id"][:8])).to_be_visible()
    toast.get_by_role("button", name="Copy command").click()
    expect(toast.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "forewarn machine restart web-0"
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("button", name=re.compile(r"as commands \(1\)")).click()
    expect(page.get_by_role("dialog")).to_contain_text("forewarn machine restart web-0")


def test_the_keyboard_alone_finds_a_verb_and_is_safe_from_what_hurts(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/hosts/host-1")
    more = page.locator("main .menu-button")
    more.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("Escape")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name=re.compile("^Fail")).press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Do nothing")).to_be_focused()
    for name in ("web-0", "web-3", "FrontEnd_IN_0", "batch_0"):
        expect(dialog.locator(".touched")).to_contain_text(name)
    accessibility.check(page)
    dialog.get_by_role("button", name="Fail host-1").press("Enter")
    expect(dialog.get_by_label("to confirm")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(more).to_be_focused()
    assert server.all("orders") == []


def test_shortcuts_lead_through_the_views_and_can_be_turned_off(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/history")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    accessibility.check(page)
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page).to_have_url(re.compile("/console/hosts$"))
    page.keyboard.press("!")
    expect(page.get_by_role("dialog", name="Hold all new work?")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Menu").click()
    accessibility.check(page)
    page.get_by_role("group", name="Single-key shortcuts").get_by_label("Off").check()
    page.keyboard.press("Escape")
    page.keyboard.press("!")
    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page).to_have_url(re.compile("/console/hosts$"))
    expect(page.get_by_role("dialog")).to_have_count(0)
