"""The report: what each guest did and when, and whether that was expected. Also as JUnit XML."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.text_formats import counted
from forewarn.core.time_formats import format_span_briefly
from forewarn.rehearsal.scenario import Expectation, Scenario
from forewarn.wire.answers.coding import ANSWER_CODEC


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """An event, in its last state."""

    id: str
    type: str
    machines: tuple[str, ...]  # named in the announcement
    announced: datetime
    not_before: datetime
    started: datetime | None = None
    ended: datetime | None = None
    why: str | None = None
    approved: datetime | None = None  # the first approval
    approvals: Mapping[str, datetime] = field(default_factory=dict)  # by author

    @property
    def approvable(self) -> bool:
        """Whether guests had notice.

        NotBefore has whole seconds, so that it may lie in the future even for an event without notice.
        """
        return self.not_before > self.announced and self.started != self.announced


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestEvent:
    """One event as one guest saw it. Times are seconds since the start of the scenario."""

    id: str
    type: str
    named: bool  # whether it names the machine of this guest
    announced_seconds: float
    seen_seconds: float | None
    approved_seconds: float | None  # by this guest
    started_seconds: float | None
    ended_seconds: float | None
    notice_seconds: float  # as announced
    used_seconds: float | None  # of the notice, until the first approval or the start

    def after_announcement(self, seconds: float | None) -> float | None:
        """Return a time relative to the announcement."""
        return None if seconds is None else seconds - self.announced_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestReport:
    """The activity of one guest."""

    machine: str
    polls: int
    spoiled: int
    first_poll_seconds: float | None
    last_poll_seconds: float | None
    events: tuple[GuestEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """The results of a probe. Times are real, except `first_outage_seconds`."""

    name: str
    looks: int
    outages: int
    longest_outage_seconds: float
    first_outage_seconds: float | None  # in service time, since the start of the scenario
    back_within_seconds: float | None  # null: no outage is allowed
    holds: bool  # at the end
    why: str  # the reason of the last failure

    def failures(self) -> tuple[str, ...]:
        """Return the differences from the expectation."""
        if not self.looks:
            return ()
        allowed = self.back_within_seconds
        if not self.holds:
            return (f"probe {self.name} does not hold in the end: {self.why}",)
        if allowed is None and self.outages:
            lasted = format_span_briefly(self.longest_outage_seconds)
            return (f"probe {self.name} did not hold throughout, but failed for {lasted}: {self.why}",)
        if allowed is not None and self.longest_outage_seconds > allowed:
            late = f"after {self.longest_outage_seconds:.1f} s, not within {allowed:g} s"
            return (f"probe {self.name} was back {late}: {self.why}",)
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One test case of the report, and its failures."""

    name: str
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalReport:
    """The result of a rehearsal. Its fields are the keys of the JSON report."""

    scenario: str
    failures: tuple[str, ...]
    lasted_seconds: float  # of service time
    guests: tuple[GuestReport, ...]
    probes: tuple[ProbeReport, ...] = ()
    checks: tuple[Check, ...] = ()  # the same failures by scenario, guest and probe
    took_seconds: float = 0.0  # of real time
    interrupted: bool = False

    @property
    def held(self) -> bool:
        """Whether all expectations were met."""
        return not self.failures


def report(
    scenario: Scenario,
    accounts: Mapping[str, GuestAccount],
    events: Sequence[EventFacts],
    *,
    began: datetime,
    ended: datetime,
    troubles: Iterable[str] = (),
) -> RehearsalReport:
    """Make a report. `troubles` are additional failures of the scenario."""
    checks = (
        Check(name="scenario", failures=tuple(troubles)),
        *checks_of_guests(scenario, accounts, events, began=began),
    )
    shown = [
        account
        for account in accounts.values()
        if account.polls or account.machine in scenario.expect.machines
    ]
    return RehearsalReport(
        scenario=scenario.name,
        lasted_seconds=(ended - began).total_seconds(),
        guests=tuple(_guest(account, events, began) for account in shown),
        failures=_all_failures(checks),
        checks=checks,
    )


def with_probes(
    report_: RehearsalReport, probes: Sequence[ProbeReport], *, took_seconds: float
) -> RehearsalReport:
    """Add the results of the probes, and how long the rehearsal really took."""
    probed = (Check(name=f"probe {each.name}", failures=each.failures()) for each in probes)
    checks = (*report_.checks, *probed)
    return replace(
        report_,
        probes=tuple(probes),
        checks=checks,
        failures=_all_failures(checks),
        took_seconds=round(took_seconds, 3),
    )


def _all_failures(checks: Iterable[Check]) -> tuple[str, ...]:
    return tuple(failure for check in checks for failure in check.failures)


def _guest(account: GuestAccount, events: Sequence[EventFacts], began: datetime) -> GuestReport:
    met = [event for event in events if event.id in account.seen or account.machine in event.machines]
    return GuestReport(
        machine=account.machine,
        polls=account.polls,
        spoiled=account.spoiled,
        first_poll_seconds=_since(began, account.first_poll),
        last_poll_seconds=_since(began, account.last_poll),
        events=tuple(_guest_event(account, event, began) for event in met),
    )


def _guest_event(account: GuestAccount, event: EventFacts, began: datetime) -> GuestEvent:
    freed = event.approved or event.started
    sighting = account.seen.get(event.id)
    approved = account.approved.get(event.id)
    if approved is not None:  # the service handled it before it answered
        approved = event.approvals.get(account.machine, approved)
    return GuestEvent(
        id=event.id,
        type=event.type,
        named=account.machine in event.machines,
        announced_seconds=(event.announced - began).total_seconds(),
        seen_seconds=_since(began, sighting.at if sighting else None),
        approved_seconds=_since(began, approved),
        started_seconds=_since(began, event.started),
        ended_seconds=_since(began, event.ended),
        notice_seconds=(event.not_before - event.announced).total_seconds(),
        used_seconds=_since(event.announced, freed),
    )


def _since(start: datetime, moment: datetime | None) -> float | None:
    return None if moment is None else (moment - start).total_seconds()


# Expectations


def checks_of_guests(
    scenario: Scenario, accounts: Mapping[str, GuestAccount], events: Sequence[EventFacts], *, began: datetime
) -> Iterator[Check]:
    """Yield a check for each machine, with the expectations that were not met."""
    for name in scenario.expect.machines:
        found: list[str] = []
        account, own = accounts[name], [event for event in events if name in event.machines]
        found += _poll_failures(scenario.expect, account)
        found += _sight_failures(scenario.expect, account, own)
        found += _approval_failures(scenario.expect, account, own)
        if scenario.expect.recovered and not _recovered(scenario, account, began):
            found.append(f"{name} should have recovered, but got no valid answer after the faults")
        yield Check(name=f"guest {name}", failures=tuple(found))


def _poll_failures(expect: Expectation, account: GuestAccount) -> list[str]:
    if expect.polled is True and not account.polls:
        return [f"{account.machine} should have polled, and never did"]
    if expect.polled is False and account.polls:
        return [f"{account.machine} should not have polled, and did {counted(account.polls, 'time')}"]
    return []


def _sight_failures(expect: Expectation, account: GuestAccount, own: Sequence[EventFacts]) -> list[str]:
    if expect.saw is None:
        return []
    if not own:
        return [f"{account.machine} had no event that it could have seen"] if expect.saw else []
    return [
        f"{account.machine} {'should have seen' if expect.saw else 'should not have seen'} the {event.type}"
        for event in own
        if (event.id in account.seen) is not expect.saw
    ]


def _approval_failures(expect: Expectation, account: GuestAccount, own: Sequence[EventFacts]) -> list[str]:
    if expect.approved is None:
        return []
    found = []
    for event in own:
        if not event.approvable:
            continue
        if expect.approved and event.approved is None:
            found.append(f"the {event.type} of {account.machine} should have been approved, and was not")
        elif not expect.approved and event.approved is not None:
            found.append(f"the {event.type} of {account.machine} should not have been approved, and was")
        elif expect.within and event.approved and event.approved - event.announced > expect.within:
            took, most = (event.approved - event.announced).total_seconds(), expect.within.total_seconds()
            late = f"after {took:.0f} s, not within {most:.0f} s"
            found.append(f"the {event.type} of {account.machine} was approved {late}")
    return found


def _recovered(scenario: Scenario, account: GuestAccount, began: datetime) -> bool:
    ends = [at + (fault.lasts or timedelta()) for at, fault in scenario.fault_steps]
    return account.last_sound is not None and account.last_sound >= began + max(ends, default=timedelta())


def as_json(report_: RehearsalReport) -> dict[str, Any]:
    """Return a report as JSON."""
    return {"scenario": report_.scenario, "held": report_.held, **ANSWER_CODEC.write(report_)}


def junit(reports: Sequence[RehearsalReport]) -> str:
    """Return JUnit XML: a suite per scenario, and a case for the scenario and each guest and probe."""
    suites = ElementTree.Element("testsuites", name="forewarn rehearse")
    for report in reports:
        failed = sum(bool(check.failures) for check in report.checks)
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=report.scenario,
            tests=str(len(report.checks)),
            failures=str(failed),
            errors="0",
            skipped="0",
            time=f"{report.took_seconds:.3f}",
        )
        for check in report.checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"forewarn.{report.scenario}", name=check.name
            )
            if check.failures:
                failure = ElementTree.SubElement(case, "failure", message=_readable(check.failures[0]))
                failure.text = _readable("\n".join(check.failures))
    ElementTree.indent(suites)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(suites, encoding='unicode')}\n"


def _readable(text: str) -> str:
    """Replace characters that XML does not allow. They may come from the output of a program."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
