"""The rules for announcements that orders and rollouts share."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta

import pytest

from forewarn.core.admission import announcing
from forewarn.core.admission.announcing import Proposal
from forewarn.core.admission.timing import Timing
from forewarn.core.basic_types import GroupName, MachineId, MachineName, OrderId, ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.model.constraints import ArmedDomain, Budget
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.project import Calendar, Window
from forewarn.core.redaction import unmarked
from tests.helpers.service.refused import refused

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
WEB, DB = GroupName("web"), GroupName("db")
NIGHT = Calendar(windows=(Window(days=frozenset(range(7)), start=time(22), length=timedelta(hours=2)),))
CROWDED = "redeploy some of them to other hosts, add machines to the group, or lower its budget"


def named(*names: str) -> dict[MachineId, MachineName]:
    return {MachineId(name): MachineName(name) for name in names}


def armed(*domains: int) -> dict[int, ArmedDomain]:
    return {domain: ArmedDomain(events=1, order=OrderId("A")) for domain in domains}


def disturbing(unwell: Mapping[GroupName, int] | None = None, **groups: Mapping[int, int]) -> Footprint:
    counts = {GroupName(name): counts for name, counts in groups.items()}
    return Footprint(counts=counts, projects=frozenset({ProjectName("shop")}), unwell=unwell or {})


def at_night(work: timedelta = timedelta(minutes=5)) -> Timing:
    return Timing(notice=timedelta(minutes=15), work=work, calendars={ProjectName("shop"): NIGHT})


def proposed(footprint: Footprint, **more: object) -> Proposal:
    free = {"armed": {}, "budgets": {}, "timing": Timing()}
    return Proposal(host="host-1", footprint=footprint, **{**free, **more})  # type: ignore[arg-type]


def reasons(footprint: Footprint, *, now: datetime = NOON, **more: object) -> list[str]:
    return [unmarked(str(each)) for each in announcing.why_not(proposed(footprint, **more), now=now)]


# Rule 4


def test_work_waits_while_its_group_has_an_armed_event_of_another_update_domain() -> None:
    assert reasons(disturbing(web={1: 1}), armed={WEB: armed(0)}) == [
        "web: update domain 1 waits for domain 0"
    ]


def test_an_armed_event_of_the_same_update_domain_does_not_block_work() -> None:
    assert reasons(disturbing(web={1: 1}), armed={WEB: armed(1)}) == []


def test_armed_events_of_other_groups_do_not_block_work() -> None:
    assert reasons(disturbing(web={1: 1}), armed={DB: armed(0)}) == []


def test_the_lowest_other_update_domain_is_named() -> None:
    others = {WEB: armed(3, 2, 1)}
    assert reasons(disturbing(web={1: 1}), armed=others) == ["web: update domain 1 waits for domain 2"]


def test_only_the_lowest_update_domain_of_a_host_is_announced_and_compared() -> None:
    assert reasons(disturbing(web={0: 1, 1: 1}), armed={WEB: armed(0)}) == []
    assert reasons(disturbing(web={0: 1, 1: 1}), armed={WEB: armed(1)}) == [
        "web: update domain 0 waits for domain 1"
    ]


def test_a_reason_names_the_group_that_causes_it() -> None:
    proposal = proposed(disturbing(web={1: 1}), armed={WEB: armed(0)})
    (wait,) = announcing.why_not(proposal, now=NOON)
    assert (wait.group, wait.stuck) == (WEB, False)


# Budgets


def test_a_group_without_a_budget_can_spare_all_machines() -> None:
    assert reasons(disturbing(web={0: 3}), budgets={}) == []


def test_work_waits_for_machines_that_are_down_or_under_an_event() -> None:
    budget = Budget(needs=2, members=4, down=named("db-3"), announced=named("db-1", "db-2"))
    assert reasons(disturbing(db={0: 1}), budgets={DB: budget}) == [
        "db: needs 2 healthy, db-3 is down, db-1 and db-2 are under an event"
    ]


def test_a_machine_that_is_down_and_under_an_event_counts_once() -> None:
    budget = Budget(needs=2, members=3, down=named("db-1"), announced=named("db-1"))
    assert budget.spare == 0
    assert reasons(disturbing(db={0: 1}), budgets={DB: budget}) == ["db: needs 2 healthy, db-1 is down"]


def test_a_group_can_lose_as_many_machines_as_it_can_spare() -> None:
    assert reasons(disturbing(db={0: 2}), budgets={DB: Budget(needs=2, members=4)}) == []
    assert reasons(disturbing(db={0: 2}), budgets={DB: Budget(needs=3, members=4)}) != []


def test_machines_that_are_unhealthy_already_do_not_count_against_a_budget() -> None:
    budget = Budget(needs=2, members=3, down=named("db-1"))
    assert reasons(disturbing({DB: 1}, db={0: 1}), budgets={DB: budget}) == []


def test_only_the_largest_update_domain_counts_against_a_budget() -> None:
    assert reasons(disturbing(db={0: 1, 1: 2}), budgets={DB: Budget(needs=1, members=3)}) == []


def test_a_budget_that_can_never_be_met_is_stuck() -> None:
    proposal = proposed(disturbing(db={0: 2}), budgets={DB: Budget(needs=2, members=3)})
    (wait,) = announcing.why_not(proposal, now=NOON)
    assert wait.stuck
    assert wait.reason == f"needs 2 healthy of 3, but host-1 carries 2 of one update domain: {CROWDED}"


# Windows and notice


def test_work_is_announced_its_notice_before_a_window_opens() -> None:
    opens = NOON.replace(hour=22)
    assert reasons(disturbing(web={0: 1}), timing=at_night()) == [
        "host-1: outside the window of project shop, which opens 2026-01-05 22:00 (UTC)"
    ]
    early, ahead = opens - timedelta(minutes=15, seconds=1), opens - timedelta(minutes=15)
    assert reasons(disturbing(web={0: 1}), timing=at_night(), now=early) != []
    assert reasons(disturbing(web={0: 1}), timing=at_night(), now=ahead) == []


def test_all_reasons_are_given_together() -> None:
    budget = Budget(needs=2, members=3, down=named("web-2"))
    assert reasons(
        disturbing(web={1: 1}), armed={WEB: armed(0)}, budgets={WEB: budget}, timing=at_night()
    ) == [
        "web: update domain 1 waits for domain 0",
        "host-1: outside the window of project shop, which opens 2026-01-05 22:00 (UTC)",
        "web: needs 2 healthy, web-2 is down",
    ]


# Refusals


def test_work_that_no_window_has_room_for_is_refused() -> None:
    long = proposed(disturbing(web={0: 1}), timing=at_night(timedelta(hours=2)))
    with refused(Invalid, match="host-1: project shop has no window with room for 2 h of work"):
        announcing.check(long, what="host-1", now=NOON)


def test_work_that_a_group_can_never_spare_is_refused() -> None:
    budgets = {DB: Budget(needs=2, members=3)}
    crowded = proposed(disturbing(db={0: 1, 1: 2}), budgets=budgets)
    with pytest.raises(Invalid, match="group db: needs 2 healthy of 3, but host-1 carries 2 of one"):
        announcing.check(crowded, what="host-1", now=NOON)


def test_work_that_only_has_to_wait_is_not_refused() -> None:
    budget = Budget(needs=2, members=3, down=named("db-1"))
    patient = proposed(
        disturbing(db={1: 1}),
        armed={DB: armed(0)},
        budgets={DB: budget},
        timing=at_night(),
    )
    announcing.check(patient, what="host-1", now=NOON)
    assert announcing.why_not(patient, now=NOON)
