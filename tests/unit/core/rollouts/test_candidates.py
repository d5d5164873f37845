"""The stages that a rollout plans for work on hosts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.admission import announcing, work_durations
from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    GroupName,
    HostState,
    MachineId,
    MachineName,
    Mobility,
    ProjectName,
    RolloutAction,
    ServiceMode,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import ArmedDomain, Budget
from forewarn.core.model.footprint import DomainShare, Footprint
from forewarn.core.model.host import Host
from forewarn.core.model.rollout import Rollout, RolloutTerms
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.rollouts.candidates import Candidates, planned_stages
from forewarn.core.rollouts.forecast import ends_about
from tests.unit.core.model.test_rollout import NOW, WEB, carries, host, over, survey

MINUTE = timedelta(minutes=1)
POLICY = Policy()


def share(mobility: Mobility, domain: int = 0, group: str = "web", **more: Any) -> DomainShare:
    facts = {"machines": 1, "unsized": 1, **more}
    return DomainShare(
        group=GroupName(group),
        update_domain=domain,
        project=ProjectName("default"),
        mobility=mobility,
        **facts,
    )


def servicing(ground: HostSurvey, **terms: Any) -> Rollout:
    return replace(over(ground), work=Work.HOST, terms=RolloutTerms(**terms))


def spans(ground: HostSurvey, **terms: Any) -> list[tuple[timedelta, timedelta]]:
    """Return the notice and the duration of each stage on host-1."""
    stages = planned_stages(servicing(ground, **terms), host(1), ground, POLICY)
    return [(stage.notice, stage.lasting) for stage in stages]


def test_machines_that_can_leave_do_and_the_others_restart_with_their_host() -> None:
    shares = (share(Mobility.LIVE), share(Mobility.COLD, group="db"), share(Mobility.NONE, group="own"))
    ground = survey(Footprint.of(shares))
    # Two machines move at once. A live move has the same notice as a restart.
    assert spans(ground) == [(15 * MINUTE, 4 * MINUTE), (15 * MINUTE, 5 * MINUTE)]
    assert spans(ground, returning=True)[2] == (15 * MINUTE, 4 * MINUTE)
    assert spans(ground, mode=ServiceMode.IN_PLACE) == [(15 * MINUTE, 5 * MINUTE)]


def test_work_on_an_empty_host_notifies_no_guest() -> None:
    assert spans(survey(Footprint())) == [(timedelta(), 5 * MINUTE)]
    emptied = survey(Footprint.of([share(Mobility.COLD)]))
    assert spans(emptied) == [(10 * MINUTE, 4 * MINUTE), (timedelta(), 5 * MINUTE)]


def test_update_domains_of_a_group_leave_one_after_another() -> None:
    ground = survey(Footprint.of([share(Mobility.COLD, domain) for domain in range(3)]))
    assert spans(ground)[:-1] == [(10 * MINUTE, 2 * MINUTE)] * 3


def test_the_time_of_moves_follows_from_memory_and_slots() -> None:
    shares = [share(Mobility.COLD, group=f"g{i}", unsized=0, memory=32, largest=32) for i in range(4)]
    one = work_durations.LEAST_MOVE + 32 * work_durations.PER_GIB
    assert work_durations.shares_time(shares, 2) == 2 * one
    assert work_durations.shares_time(shares, None) == one
    assert work_durations.shares_time([], None) == timedelta()
    in_bytes = share(Mobility.COLD, unsized=0, memory=10.0**15, largest=10.0**15)
    assert work_durations.shares_time([in_bytes], 2) < timedelta(days=2)
    ground = survey(Footprint.of(shares))
    quick = replace(ground, hosts={host(1): Host(name=host(1), at_once=4)})
    assert spans(quick)[0][1] == one
    outside = replace(ground, hosts={host(1): Host(name=host(1), driver=EXTERNAL)})
    assert spans(outside)[0][1] == one
    assert spans(outside, driver="libvirt")[0][1] == 2 * one


def test_bare_metal_restarts_in_place() -> None:
    metal = replace(
        survey(Footprint.of([share(Mobility.COLD)])),
        hosts={host(1): Host(name=host(1), bare_metal=True)},
    )
    assert spans(metal) == [(15 * MINUTE, 5 * MINUTE)]


def test_a_wave_ends_with_its_slowest_host() -> None:
    ground = survey(Footprint.of([share(Mobility.COLD)]), Footprint())
    assert ends_about(servicing(ground), ground.hosts, ground, now=NOW, policy=POLICY) == NOW + 19 * MINUTE


def test_domains_that_would_restart_together_are_refused_or_waited_for() -> None:
    ground = survey(Footprint.of([share(Mobility.NONE), share(Mobility.NONE, 1)]))
    candidates = Candidates(servicing(ground), ground, POLICY)
    with pytest.raises(Conflict, match=r"restart together. Move machines away, or say why"):
        candidates.check(now=NOW)
    assert candidates.why_not(host(1), now=NOW)[0].stuck
    Candidates(servicing(ground, together="firmware"), ground, POLICY).check(now=NOW)
    in_place = Candidates(servicing(ground, mode=ServiceMode.IN_PLACE), ground, POLICY)
    with pytest.raises(Conflict, match=r"evacuate them \(--evacuate\)"):
        in_place.check(now=NOW)


def test_a_lost_host_waits_for_a_person() -> None:
    ground = replace(survey(Footprint()), hosts={host(1): Host(name=host(1), state=HostState.LOST)})
    (wait,) = Candidates(servicing(ground), ground, POLICY).why_not(host(1), now=NOW)
    assert wait.reason == "is lost: fail it, or wait for it"


def test_an_unreachable_host_waits_until_it_is_reachable() -> None:
    away = Host(name=host(1), unreachable_since=NOW)
    ground = replace(survey(Footprint()), hosts={host(1): away})
    (wait,) = Candidates(servicing(ground), ground, POLICY).why_not(host(1), now=NOW)
    assert (wait.reason, wait.stuck) == ("cannot be reached since 2026-01-05T12:00:00Z", False)


def test_machines_of_one_domain_are_counted_together_whatever_their_mobility() -> None:
    footprint = Footprint.of([share(Mobility.LIVE), share(Mobility.COLD, machines=2)])
    assert footprint.counts == {WEB: {0: 3}}


def test_hosts_with_the_same_footprint_share_stages() -> None:
    ground = survey(
        *(carries(**{group: {0: 1}}) for group in ("web", "db", "slow", "mute")),
        carries(web={0: 1, 1: 1}),
        carries(),
    )
    ground = replace(
        ground,
        notices={GroupName("slow"): 60 * MINUTE},
        heard=frozenset(map(GroupName, ("web", "db", "slow"))),
    )
    policy, mine = Policy(unheard_notice=MINUTE), over(ground)
    candidates = Candidates(mine, ground, policy)
    found = {name: tuple(stage for stage, _ in candidates.stages(name)) for name in ground.hosts}
    assert found == {name: planned_stages(mine, name, ground, policy) for name in ground.hosts}
    assert candidates.stages(host(1)) is candidates.stages(host(2))
    assert [sum((stage.notice for stage in stages), timedelta()) for stages in found.values()] == [
        notice * MINUTE for notice in (15, 15, 60, 1, 30, 0)
    ]


def test_an_action_keeps_the_name_of_the_request() -> None:
    ground = survey(Footprint())
    assert (servicing(ground).action, servicing(ground).ordered) == ("service", Action.SERVICE)
    assert (over(ground).action, over(ground).ordered) == ("freeze", Action.MAINTENANCE)
    assert [action.work for action in RolloutAction] == [Work.FREEZE, Work.REBOOT, Work.REDEPLOY, Work.HOST]


def test_work_that_is_armed_later_does_not_wait_for_another_domain() -> None:
    armed = {WEB: {1: ArmedDomain(events=1)}}
    ground = survey(Footprint.of([share(Mobility.COLD)]), armed=armed)
    assert Candidates(servicing(ground), ground, POLICY).why_not(host(1), now=NOW)
    early = replace(ground, notices={WEB: timedelta(hours=1)})
    assert not Candidates(servicing(early), early, POLICY).why_not(host(1), now=NOW)


def test_work_that_is_armed_later_waits_only_for_a_budget_that_can_never_be_met() -> None:
    down = {MachineId("2"): MachineName("web-2")}
    ground = survey(Footprint.of([share(Mobility.COLD, machines=2)]), notices={WEB: timedelta(hours=1)})
    for members, reasons in [
        (3, ["web: needs 2 healthy of 3, but host-1 carries 2 of one update domain: " + announcing.WAYS_OUT]),
        (4, []),
    ]:
        known = replace(ground, budgets={WEB: Budget(needs=2, members=members, down=down)})
        candidates = Candidates(servicing(known), known, POLICY)
        assert [f"{why}" for why in candidates.why_not(host(1), now=NOW)] == reasons
