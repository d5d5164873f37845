"""The page of a machine."""

from playwright.sync_api import expect

from tests.helpers.console.console_fixtures import Serve, Visit

TWO_OF_A_NAME = """
[projects.red]
[projects.blue]
[hosts.host-1]
[[machines]]
name = "web-0"
project = "red"
host = "host-1"
address = "127.0.0.11"
[[machines]]
name = "web-0"
project = "blue"
host = "host-1"
address = "127.0.0.12"
"""


def test_a_name_in_two_projects_links_to_both_machines(serve: Serve, visit: Visit) -> None:
    visitor = visit(serve(fleet=TWO_OF_A_NAME))
    visitor.expects(r"^409 GET /v1/machines/web-0$")
    page = visitor.open("/console/machines/web-0")
    page.get_by_role("link", name="web-0 of blue").click()
    expect(page.get_by_role("main")).to_contain_text("127.0.0.12")
    page.go_back()
    page.get_by_role("link", name="web-0 of red").click()
    expect(page.get_by_role("main")).to_contain_text("127.0.0.11")
