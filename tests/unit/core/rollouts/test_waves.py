"""Waves: hosts in the given order, or the most constrained hosts first if that needs fewer waves."""

import random

from forewarn.core.basic_types import GroupName, HostName
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.rollout import Wave
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.waves import WaveLimits


def limits(carried: dict[str, dict[str, list[int]]], *, at_once: int = 100, **spare: int) -> WaveLimits:
    footprints = {
        HostName(host): Footprint(
            counts={
                GroupName(group): {each: its.count(each) for each in its} for group, its in groups.items()
            }
        )
        for host, groups in carried.items()
    }
    survey = HostSurvey(footprints=footprints)
    return WaveLimits(
        survey=survey, at_once=at_once, spare={GroupName(name): count for name, count in spare.items()}
    )


def cut(made: WaveLimits, *hosts: str) -> list[list[str]]:
    return [list(wave.hosts) for wave in made.cut(map(HostName, hosts or made.survey.footprints))]


# A crown graph: each host conflicts with its neighbour. In the given order, every pair is split.
CROWN = {
    f"{side}{number}": {
        f"g{number}-{other}" if side == "a" else f"g{other}-{number}": [side == "b"]
        for other in range(4)
        if other != number
    }
    for number in range(4)
    for side in "ab"
}


def test_hosts_keep_their_order_if_no_other_order_is_better() -> None:
    made = limits({"c": {"web": [0]}, "a": {"web": [1]}, "b": {"web": [0]}})
    assert cut(made, "c", "a", "b") == [["c", "b"], ["a"]]


def test_the_most_constrained_hosts_first_need_fewer_waves() -> None:
    made = limits(
        {
            host: {group: [int(each) for each in its] for group, its in its_.items()}
            for host, its_ in CROWN.items()
        }
    )
    pairs = [f"{side}{number}" for number in range(4) for side in "ab"]
    assert len(made.in_order([HostName(host) for host in pairs])) == 4
    waves = cut(made, *pairs)
    assert sorted(map(sorted, waves)) == [["a0", "a1", "a2", "a3"], ["b0", "b1", "b2", "b3"]]


def test_every_cut_produces_valid_waves() -> None:
    chance = random.Random(7)
    carried = {
        f"host-{number:02}": {
            f"group-{chance.randrange(12)}": [chance.randrange(3) for _ in range(chance.choice([1, 1, 1, 2]))]
            for _ in range(4)
        }
        for number in range(60)
    }
    for at_once, spare in ((100, {}), (3, {}), (100, {f"group_{number}": 2 for number in range(12)})):
        made = limits(carried, at_once=at_once)
        made = WaveLimits(
            survey=made.survey,
            at_once=at_once,
            spare={GroupName(name.replace("_", "-")): count for name, count in spare.items()},
        )
        waves = made.cut(made.survey.footprints)
        assert made.allow(waves, made.survey.footprints)
        assert len(waves) <= len(made.in_order(list(made.survey.footprints)))


def test_a_host_that_exceeds_the_limit_stays_the_first_of_its_wave() -> None:
    made = limits({**{host: {f"x-{host}": [0]} for host in "ab"}, "big": {"web": [0, 0, 0]}}, web=1)
    waves = (Wave(hosts=(HostName("big"), HostName("a"), HostName("b"))),)
    assert made.allow(waves, waves[0].hosts)
    found = made.most_constrained_first([HostName("a"), HostName("b"), HostName("big")])
    assert all(made.pick(wave.hosts) == tuple(wave.hosts) for wave in found)


def test_no_hosts_make_no_waves() -> None:
    assert cut(limits({})) == []


def test_a_picked_wave_respects_the_limit_of_hosts() -> None:
    made = limits({"a": {}, "b": {}, "c": {}}, at_once=2)
    assert made.pick(map(HostName, "abc")) == ("a", "b")
