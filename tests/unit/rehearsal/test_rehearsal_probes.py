"""Probes of a workload, and their failures."""

import asyncio
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from xml.etree import ElementTree

import pytest

from forewarn.rehearsal.probes import look_at
from forewarn.rehearsal.report import Check, ProbeReport, RehearsalReport, junit, with_probes
from forewarn.rehearsal.scenario import Probe


def looked(**fields: object) -> str:
    return asyncio.run(look_at(Probe(name="web", **fields)))  # type: ignore[arg-type]


def probed(
    *, outages: int = 0, longest: float = 0.0, back_within: float | None = None, holds: bool = True
) -> ProbeReport:
    return ProbeReport(
        name="web",
        looks=9,
        outages=outages,
        longest_outage_seconds=longest,
        first_outage_seconds=None,
        back_within_seconds=back_within,
        holds=holds,
        why="status 503",
    )


def test_a_command_holds_if_it_ends_with_0() -> None:
    assert looked(command=("true",)) == ""
    assert looked(command=("sh", "-c", "echo no backend >&2; exit 3")) == "exit code 3: no backend"


def test_a_command_that_takes_too_long_does_not_hold() -> None:
    why = looked(command=("sleep", "60"), timeout=timedelta(seconds=0.05))
    assert why == "no result within 0.05 s"


def test_a_command_that_cannot_be_run_does_not_hold() -> None:
    assert looked(command=("no-such-probe",)) == "'no-such-probe' cannot be run: No such file or directory"


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("status", "why"), [(200, ""), (302, ""), (503, "status 503")])
def test_a_url_holds_if_it_is_answered_without_an_error(status: int, why: str) -> None:
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        Thread(target=server.handle_request).start()
        assert looked(url=f"http://127.0.0.1:{server.server_port}/{status}") == why


def test_a_refused_connection_does_not_hold() -> None:
    assert looked(url="http://127.0.0.1:1/") != ""


@pytest.mark.parametrize(
    ("probe", "failures"),
    [
        (probed(), ()),
        (probed(back_within=5), ()),
        (probed(outages=1, longest=4, back_within=5), ()),
        (
            probed(outages=1, longest=7, back_within=5),
            ("probe web was back after 7.0 s, not within 5 s: status 503",),
        ),
        (
            probed(outages=1, longest=7),
            ("probe web did not hold throughout, but failed for 7 s: status 503",),
        ),
        (
            probed(outages=1, longest=1, back_within=5, holds=False),
            ("probe web does not hold in the end: status 503",),
        ),
    ],
)
def test_the_failures_of_a_probe_follow_from_its_expectation(
    probe: ProbeReport, failures: tuple[str, ...]
) -> None:
    assert probe.failures() == failures


def rehearsed(*probes: ProbeReport, trouble: str = "") -> RehearsalReport:
    checks = (Check(name="scenario", failures=(trouble,) if trouble else ()), Check(name="guest web-0"))
    whole = RehearsalReport(
        scenario="mine", failures=(trouble,) if trouble else (), lasted_seconds=60, guests=(), checks=checks
    )
    return with_probes(whole, probes, took_seconds=1.5)


def test_a_failed_probe_fails_the_rehearsal() -> None:
    report = rehearsed(probed(), trouble="it was interrupted")
    assert report.failures == ("it was interrupted",)
    report = rehearsed(probed(outages=1, longest=2))
    assert report.failures == ("probe web did not hold throughout, but failed for 2 s: status 503",)
    assert not report.held


def test_a_report_is_a_suite_with_a_case_for_each_guest_and_probe() -> None:
    written = junit([rehearsed(), rehearsed(probed(outages=1, longest=2), trouble="it said <\x1b>")])
    first, second = ElementTree.fromstring(written)
    assert (first.get("name"), first.get("tests"), first.get("failures")) == ("mine", "2", "0")
    assert [case.get("name") for case in second] == ["scenario", "guest web-0", "probe web"]
    assert (second.get("failures"), second.get("time")) == ("2", "1.500")
    (failure,) = second[0]
    assert failure.get("message") == "it said <\N{REPLACEMENT CHARACTER}>"
