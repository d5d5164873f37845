"""Interchangeable hosts take each other's machines."""

from dataclasses import replace
from typing import Any

from forewarn.core.basic_types import HostName, HostState, OrderId, ServiceMode, Work
from forewarn.core.model.host import Host
from forewarn.core.model.rollout import InterchangeableHosts, Rollout, Wave, WaveState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts import evacuation, forecast, interchangeable_hosts, waves
from forewarn.core.rollouts.interchangeable_hosts import MOST_HOMES
from tests.unit.core.model.test_rollout import carries, host, over, survey

ZERO, ONE, BOTH = carries(web={0: 1}), carries(web={1: 1}), carries(web={0: 1, 1: 1})


def alike(ground: HostSurvey, **others: Any) -> list[str]:
    """Return interchangeable hosts; hosts of the survey by number, others by name."""
    found = interchangeable_hosts.find(ground, {HostName(name): each for name, each in others.items()})
    return [" ".join(name.removeprefix("host-") for name in kind) for kind in found]


def moving(ground: HostSurvey, *kinds: InterchangeableHosts, at_once: int = 99, **more: Any) -> Rollout:
    """Return a redeploy over all hosts, split into waves."""
    asked = replace(over(ground, at_once=at_once), work=Work.REDEPLOY, alike=kinds, waves=(), **more)
    return replace(asked, waves=waves.cut(asked, ground, asked.left))


def sizes(rollout: Rollout) -> list[int]:
    return [len(wave.hosts) for wave in rollout.waves]


# Interchangeable hosts


def test_hosts_without_conflicting_update_domains_are_interchangeable() -> None:
    assert alike(survey(ZERO, ONE, ZERO, ONE)) == ["1 3", "2 4"]
    assert alike(survey(carries(web={0: 1}, db={0: 2}), carries(web={1: 1}), carries(db={0: 1}))) == []
    apart = survey(
        carries(web={0: 1}, db={0: 1}), carries(db={1: 1}), carries(db={0: 1}), carries(web={1: 1})
    )
    assert alike(apart) == ["1 3", "2 4"]


def test_hosts_without_divided_groups_are_not_listed_as_interchangeable() -> None:
    assert alike(survey(ZERO, ZERO, carries(db={2: 3}), carries())) == []


def test_a_host_with_two_domains_of_a_group_matches_no_other() -> None:
    assert alike(survey(BOTH, ZERO, carries(db={0: 1}), ZERO)) == ["2 4"]


def test_hosts_that_take_no_machines_match_no_other() -> None:
    ground = survey(*[ZERO] * 5, ONE)
    closed: dict[int, dict[str, Any]] = {
        2: {"state": HostState.CORDONED},
        3: {"bare_metal": True},
        4: {"state": HostState.CORDONED, "cordoned_for": OrderId("O")},
    }
    hosts = {host(number): Host(name=host(number), **more) for number, more in closed.items()}
    assert alike(replace(ground, hosts={**ground.hosts, **hosts})) == ["1 4 5"]


def test_other_hosts_match_if_they_share_a_domain_and_conflict_with_none() -> None:
    db = carries(db={0: 1})
    assert alike(survey(ZERO, ONE), like=ZERO, other=db, unlike=carries(web={2: 1}), both=BOTH) == ["1 like"]
    assert alike(survey(ZERO), one=ONE, zero=ZERO) == ["1 zero"]
    # The second has a domain that conflicts with the first.
    more, less = carries(web={0: 1}, db={0: 1}), carries(web={0: 1}, db={1: 1})
    assert alike(survey(ZERO), a=more, b=less, c=ONE) == ["1 a"]


def test_of_very_many_matching_hosts_some_are_used() -> None:
    others = {f"other-{number:03}": ZERO for number in range(2 * MOST_HOMES)}
    (kind,) = interchangeable_hosts.find(
        survey(ZERO, ONE), {HostName(name): each for name, each in others.items()}
    )
    assert len(kind) == 1 + MOST_HOMES


# Waves


def test_a_wave_evacuates_at_most_half_of_interchangeable_hosts() -> None:
    ground = survey(*[ZERO] * 5, *[ONE] * 4)
    kinds = interchangeable_hosts.find(ground, {})
    assert sizes(moving(ground, *kinds)) == [3, 2, 2, 2]
    assert [wave.hosts[0] for wave in moving(ground, *kinds).waves] == [host(1), host(6), host(4), host(8)]
    assert sizes(moving(ground)) == [5, 4]
    in_place = replace(moving(ground, *kinds).terms, mode=ServiceMode.IN_PLACE)
    asked = replace(moving(ground, *kinds), work=Work.HOST, terms=in_place)
    assert [len(wave.hosts) for wave in waves.cut(asked, ground, asked.left)] == [5, 4]


def test_more_interchangeable_hosts_allow_larger_evacuations() -> None:
    ground = survey(*[ZERO] * 4)
    kinds = interchangeable_hosts.find(
        ground, {HostName(name): ZERO for name in "abcd"} | {HostName("e"): ONE}
    )
    assert sizes(moving(ground, *kinds)) == [4]


def test_limits_of_racks_and_of_interchangeable_hosts_both_apply() -> None:
    ground = survey(*[ZERO] * 8, sizes={"web": 8}, racks={"a": 4})
    in_rack = {host(number): Host(name=host(number), labels={"rack": "a"}) for number in range(1, 5)}
    ground = replace(ground, hosts={**ground.hosts, **in_rack})
    assert [wave.hosts for wave in moving(ground, tuple(ground.hosts)).waves] == [
        (host(1), host(2), host(5), host(6)),
        (host(3), host(4), host(7), host(8)),
    ]


def test_the_plan_warns_that_it_halves_interchangeable_hosts() -> None:
    ground = survey(*[ZERO] * 4)
    asked = moving(ground, tuple(ground.hosts))
    (said,) = forecast.more_waves_to_empty(asked, ground)
    assert said == f"2 waves instead of 1: {evacuation.HALF_OF_INTERCHANGEABLE}"


# Homes


def test_hosts_that_are_not_evacuated_are_homes_finished_ones_first() -> None:
    ground = survey(*[ZERO] * 6)
    asked = moving(ground, tuple(ground.hosts), at_once=2)
    first, *rest = asked.waves
    begun = replace(asked, waves=(replace(first, state=WaveState.DONE), *rest))
    homes = interchangeable_hosts.homes(begun, (host(3), host(4)))
    assert homes == {
        host(3): (host(1), host(2), host(5), host(6)),
        host(4): (host(2), host(1), host(6), host(5)),
    }


def test_hosts_that_match_no_other_have_no_homes() -> None:
    ground = survey(ZERO, ONE, ZERO)
    assert interchangeable_hosts.homes(moving(ground, (host(1), host(3))), (host(2),)) == {}


def test_each_host_gets_some_of_many_homes() -> None:
    ground = survey(*[ZERO] * 100)
    asked = moving(ground, tuple(ground.hosts))
    homes = interchangeable_hosts.homes(asked, asked.waves[0].hosts)
    assert {len(each) for each in homes.values()} == {MOST_HOMES}
    assert {home for each in homes.values() for home in each} == set(asked.waves[1].hosts)
    assert Wave(hosts=asked.waves[0].hosts) == asked.waves[0]
