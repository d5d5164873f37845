"""Times on a page: one stated zone, no raw timestamps, day ranges, and labels that do not overlap."""

import re

from playwright.sync_api import expect

from tests.helpers.console.browsing import wait_until
from tests.helpers.console.console_fixtures import Serve, Visit
from tests.system.console.acting import go
from tests.system.console.test_views import AXIS_LABELS, OVERLAPPING, WIDTHS

HOSTS = 6
# Short windows, so that a rollout takes several nights.
FLEET = "".join(
    [
        '[projects.shop]\ntime-zone = "Europe/Berlin"\n',
        'blackout = ["2027-03-05/2027-03-09", "2027-04-01"]\n',
        '[[projects.shop.windows]]\nstart = "22:00"\nlength = "40m"\n',
        '[defaults]\ndriver = "simulated"\n',
        f'[groups.web]\nkind = "availability-set"\nupdate-domains = {HOSTS}\nproject = "shop"\n',
        *(f"[hosts.host-{number}]\n" for number in range(HOSTS)),
        *(
            f'[[machines]]\nname = "web-{number}"\ngroup = "web"\nhost = "host-{number}"\n'
            f'update-domain = {number}\naddress = "127.0.1.{number + 1}"\n'
            for number in range(HOSTS)
        ),
    ]
)


def test_all_times_of_a_page_are_in_its_stated_zone(serve: Serve, visit: Visit) -> None:
    server = serve(fleet=FLEET)
    page = visit(server, timezone_id="America/New_York").open("/console/rollouts/new")
    zone = page.get_by_role("contentinfo")
    expect(zone).to_contain_text("in your local time (America/New_York, now UTC\N{MINUS SIGN}5)")
    windows = page.get_by_role("region", name="Maintenance windows")
    expect(windows).to_contain_text("never on 2027-03-05 to 2027-03-09, 2027-04-01")
    expect(page.locator(".wave-tick-label")).not_to_have_count(0)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        wait_until(page, f"document.documentElement.scrollWidth <= {width}")
        assert page.evaluate(OVERLAPPING, AXIS_LABELS) == [], f"labels overlap at {width} pixels"
    order = server.post("/v1/hosts/host-0/maintenance", json={"action": "freeze"})["order"]
    assert "(Europe/Berlin)" in order["waiting"][0]["reason"]
    go(page, f"/orders/{order['id']}")
    # 22:00 in Berlin.
    main = page.get_by_role("main")
    expect(main).to_contain_text("2027-03-01 16:00:00")
    expect(main).not_to_contain_text("Europe/Berlin")
    server.advance(900)
    go(page, "/history")
    expect(page.locator(".record").filter(has_text="clock advanced")).to_contain_text(
        re.compile(r"by 15 m to\s+2027-03-01 04:15:00")
    )
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("group", name="Times").get_by_label("UTC").check()
    expect(zone).to_contain_text("All times are in UTC")
    expect(page.locator(".record").filter(has_text="clock advanced")).to_contain_text(
        re.compile(r"by 15 m to\s+2027-03-01 09:15:00 UTC")
    )
