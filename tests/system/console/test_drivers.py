"""Work of a plug-in driver: unknown steps, and cancelling."""

from pathlib import Path

from playwright.sync_api import expect

from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.service.spool_driver import installed
from tests.system.console.acting import answer, go, press


def test_an_unknown_step_shows_why_and_abandoning_cancels_what_the_driver_can(
    tmp_path: Path, serve: Serve, visit: Visit
) -> None:
    installed(tmp_path)
    spool = tmp_path / "spool"
    server = serve(fleet=fleet(spool), environment={"PYTHONPATH": str(tmp_path)})
    page = visit(server).open("/console/hosts/host-1")
    expect(page.locator(".page-title")).to_contain_text(f"driver spool at {spool.as_uri()}, 2 calls at once")
    go(page, f"/orders/{server.post('/v1/machines/lost/restart')['order']['id']}")
    expect(page.get_by_role("row", name="lost")).to_contain_text("running, state unknown")
    expect(page.locator(".notice", has_text="Waiting")).to_contain_text("No such file or directory")
    unknown = page.locator(".notice", has_text="It is unknown how far 1 step is")
    expect(unknown).to_contain_text("forewarn order abandon")
    answer(press(page, "Abandon"), "Abandon")
    expect(page.locator(".page-title")).to_contain_text("being abandoned")
    expect(unknown).to_have_count(0)
    expect(page.get_by_role("button", name="Abandon …")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel …")).to_have_count(0)
    spool.mkdir()
    go(page, f"/orders/{server.post('/v1/machines/left/restart')['order']['id']}")
    expect(page.get_by_role("row", name="left")).to_contain_text("running")
    answer(press(page, "Abandon"), "Abandon")
    expect(page.get_by_role("main")).to_contain_text("Ended ")
    assert any(spool.glob("*.cancelled"))


def fleet(spool: Path) -> str:
    """Declare two machines on a host with the driver of the documentation."""
    return f"""
        [hosts.host-1]
        driver = "spool"
        uri = "{spool.as_uri()}"
        at-once = 2
        [[machines]]
        name = "lost"
        host = "host-1"
        address = "127.0.1.10"
        [[machines]]
        name = "left"
        host = "host-1"
        address = "127.0.1.11"
    """
