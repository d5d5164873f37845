"""Adding never changes an existing thing. A change shows its difference and overwrites no other change."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.helpers.console import accessibility
from tests.helpers.console.browsing import wait_until
from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs.process import Program
from tests.system.console.acting import answer, fill, press

FLEET = """
[projects.shop]
[projects.lab]
[defaults]
driver = "simulated"
[groups.web]
kind = "availability-set"
update-domains = 2
project = "shop"
[hosts.host-1]
[hosts.host-2]
[[machines]]
name = "web-0"
group = "web"
host = "host-1"
address = "127.0.1.1"
"""


@pytest.fixture
def server(serve: Serve) -> Program:
    return serve(fleet=FLEET)


def _try(dialog: Locator, button: str) -> Locator:
    """Press a button that is refused, and return what the dialog says."""
    dialog.get_by_role("button", name=button, exact=True).click()
    return dialog.get_by_role("alert")


def _change(page: Page) -> Locator:
    dialog = press(page, "Change", in_menu=True)
    expect(dialog).not_to_have_attribute("aria-busy", "true")
    return dialog


def test_adding_changes_nothing_that_exists(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expects("^409 PUT /v1/(groups|machines|hosts|projects)/")
    page = visitor.open("/console/fleet")
    before = {path: server.get(f"/v1/{path}") for path in ("groups/web", "machines/web-0", "hosts/host-1")}
    top = page.locator(".fleet-top")
    for noun, in_menu, fields, said in (
        (
            "group",
            True,
            {"Name": "web", "Kind": "scale-set", "Project": "lab"},
            'group "web" exists already (in project shop)',
        ),
        ("host", False, {"Name": "host-1", "URI": "ssh://elsewhere/"}, 'host "host-1" exists already'),
        (
            "machine",
            False,
            {"Name": "web-0", "Group": "web", "Host": "host-2"},
            'machine "web-0" exists already (in project shop, group web, on host-1)',
        ),
    ):
        dialog = press(top, f"Add a {noun}", in_menu=in_menu)
        fill(dialog, fields)
        expect(_try(dialog, "Add")).to_contain_text(said)
        if noun == "machine":
            dialog.get_by_role("link", name="Show the existing one").click()
            expect(page.get_by_role("heading", level=1)).to_contain_text("web-0")
        else:
            dialog.get_by_role("button", name="Do nothing").click()
    assert {path: server.get(f"/v1/{path}") for path in before} == before


def test_a_change_shows_its_difference_before_it_is_saved(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/machines/web-0?project=shop")
    dialog = _change(page)
    changes = dialog.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("No changes yet")
    save = dialog.get_by_role("button", name="Save")
    expect(save).to_have_attribute("aria-disabled", "true")
    fill(dialog, {"Host": "host-2", "Size": "large"})
    expect(changes.get_by_role("definition")).to_have_text(
        [
            re.compile(r"^host-1 →  becomes host-2Records that the machine now runs on host-2.+no notice"),
            "not set →  becomes large",
        ]
    )
    accessibility.check(page)
    fill(dialog, {"Host": "host-1"})
    expect(changes).not_to_contain_text("host-2")
    answer(dialog, "Save")
    machine = server.get("/v1/machines/web-0")["machine"]
    assert (machine["size"], machine["host"]) == ("large", "host-1")


def test_a_group_that_gets_another_project_says_who_goes_along(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/fleet")
    dialog = press(page.get_by_role("region", name="web"), "Change", in_menu=True)
    fill(dialog, {"Project": "lab"})
    expect(dialog.get_by_role("region", name="Changes")).to_contain_text(
        "1 machine of the group moves to project lab with it"
    )


def test_a_stale_form_overwrites_nothing_and_keeps_what_was_typed(server: Program, visit: Visit) -> None:
    visitor = visit(server)
    visitor.expects("^409 PUT /v1/machines/web-0")
    page = visitor.open("/console/machines/web-0?project=shop")
    dialog = _change(page)
    fill(dialog, {"Size": "large"})
    # Another operator reports a move and sets a zone, which the form does not show yet.
    server.call("PUT", "/v1/machines/web-0", json={"host": "host-2", "zone": "b"})
    said = _try(dialog, "Save")
    expect(said).to_contain_text("another person changed these values after you opened the form")
    expect(said.get_by_role("definition")).to_have_text(
        [re.compile("host-1 →  becomes host-2"), "not set →  becomes b"]
    )
    accessibility.check(page)
    machine = server.get("/v1/machines/web-0")["machine"]
    assert (machine["size"], machine["host"], machine["zone"]) == ("", "host-2", "b")
    expect(said).to_be_in_viewport()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        wait_until(
            page, "(dialog => dialog.scrollWidth <= dialog.clientWidth)(document.querySelector('dialog'))"
        )
    expect(dialog.get_by_label("Host", exact=True)).to_have_value("host-2")
    expect(dialog.get_by_label("Size", exact=True)).to_have_value("large")
    answer(dialog, "Save")
    machine = server.get("/v1/machines/web-0")["machine"]
    assert (machine["size"], machine["host"], machine["zone"]) == ("large", "host-2", "b")


def test_a_form_begins_with_the_values_of_the_server(server: Program, visit: Visit) -> None:
    page = visit(server).open("/console/machines/web-0?project=shop")
    dialog = _change(page)
    dialog.get_by_role("button", name="Do nothing").click()
    server.call("PUT", "/v1/machines/web-0", json={"size": "small"})
    dialog = _change(page)
    expect(dialog.get_by_label("Size", exact=True)).to_have_value("small")


def test_what_was_deleted_meanwhile_stays_deleted(server: Program, visit: Visit) -> None:
    server.call("PUT", "/v1/groups/cache", json={"kind": "scale-set"})
    visitor = visit(server)
    visitor.expects("^404 GET /v1/groups/cache", "^409 PUT /v1/groups/cache")
    page = visitor.open("/console/fleet")
    dialog = press(page.get_by_role("region", name="cache"), "Change", in_menu=True)
    fill(dialog, {"Update domains": "3"})
    server.call("DELETE", "/v1/groups/cache")
    expect(_try(dialog, "Save")).to_contain_text("does not exist any more")
    dialog.get_by_role("button", name="Do nothing").click()
    assert server.call("GET", "/v1/groups/cache").status_code == 404
