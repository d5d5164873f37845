"""Deferral of an event by a guest over HTTP."""

from pathlib import Path

from tests.helpers.programs.process import EVENTS, NEWEST, Program, sample_fleet

NEVER = "602D9444-D2CD-49C7-8624-8643E7171297"
POLICY = """
[groups.web.policy]
defer = "10m"
"""


def test_a_guest_may_defer_an_event_once(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path)
    fleet.write_text(fleet.read_text() + POLICY)
    with Program(tmp_path, "--fleet", fleet) as program:
        guest = program.guest("127.0.1.10")
        guest.document()
        event = program.post("/v1/machines/web-0/restart")["event"]["id"]

        def defer(body: object) -> int:
            return guest.client.post(
                f"{EVENTS}/defer", params={"api-version": NEWEST}, headers={"Metadata": "true"}, json=body
            ).status_code

        assert defer({"DeferRequests": [{"EventId": event}]}) == 400
        assert (
            defer({"DeferRequests": [{"EventId": "602D9444-D2CD-49C7-8624-8643E7171297", "Seconds": 60}]})
            == 400
        )
        assert defer({"DeferRequests": [{"EventId": event, "Seconds": 300}]}) == 200
        assert defer({"DeferRequests": [{"EventId": event, "Seconds": 300}]}) == 409
        program.advance(19 * 60)
        assert guest.document()["Events"][0]["EventStatus"] == "Scheduled"
        program.advance(60)
        assert guest.document()["Events"][0]["EventStatus"] == "Started"
        stranger = program.guest("127.0.1.40")
        answer = stranger.client.post(
            f"{EVENTS}/defer",
            params={"api-version": NEWEST},
            headers={"Metadata": "true"},
            json={"DeferRequests": [{"EventId": event, "Seconds": 60}]},
        )
        assert answer.status_code == 400
