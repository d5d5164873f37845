"""Update domains that follow the hosts need few waves, and spread every group."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import pytest

from forewarn.core.basic_types import DEFAULT_PROJECT, GroupKind, GroupName, MachineState
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.rollouts.domain_fitting import FittedDomains, fit
from tests.unit.slices import machine


def group(name: str, domains: int) -> Group:
    kind = GroupKind.STANDALONE if domains == 1 else GroupKind.SCALE_SET
    return Group(name=GroupName(name), project=DEFAULT_PROJECT, kind=kind, update_domains=domains)


GROUPS = {each.name: each for each in (group("web", 3), group("db", 2), group("alone", 1))}
WEB, DB = GroupName("web"), GroupName("db")


def fitted(machines: Iterable[Machine], fit_: FittedDomains) -> list[Machine]:
    return [replace(each, update_domain=fit_.domains.get(each.id, each.update_domain)) for each in machines]


def domains(machines: Iterable[Machine], name: str) -> dict[str, int]:
    return {each.name: each.update_domain for each in machines if each.group == name}


def at_random(seed: int, *, hosts: int = 30) -> list[Machine]:
    chance = random.Random(seed)
    webs = [machine(f"web-{n}", f"host-{chance.randrange(hosts)}", domain=n % 3) for n in range(30)]
    dbs = [machine(f"db-{n}", f"host-{chance.randrange(hosts)}", domain=n % 2) for n in range(10)]
    return webs + dbs


def test_machines_of_a_group_on_one_host_get_one_domain() -> None:
    there = [machine(f"web-{n}", f"host-{n // 2}", domain=n % 3) for n in range(6)]
    found = fit(there, GROUPS)
    after = domains(fitted(there, found), "web")
    assert [after[f"web-{2 * n}"] for n in range(3)] == [after[f"web-{2 * n + 1}"] for n in range(3)]
    assert set(after.values()) == {0, 1, 2}
    # Each host needs one stage instead of two; the number of waves is the same.
    assert (found.waves_before, found.waves_after) == (3, 3)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_fleet_needs_hardly_more_waves_than_its_groups_have_domains(seed: int) -> None:
    there = at_random(seed)
    found = fit(there, GROUPS)
    assert found.waves_after <= 4 < found.waves_before
    after = Counter(domains(fitted(there, found), "web").values())
    assert after.keys() == {0, 1, 2}
    assert max(after.values()) <= 16


@pytest.mark.parametrize("seed", range(3))
def test_fitting_twice_changes_nothing(seed: int) -> None:
    there = at_random(seed)
    once = fitted(there, fit(there, GROUPS))
    again = fit(once, GROUPS)
    assert (again.domains, again.waves_before) == ({}, again.waves_after)


def test_a_group_that_is_fitted_alone_follows_the_others() -> None:
    racks = [machine(f"db-{n}", f"host-{n}", domain=n % 2) for n in range(6)]
    stray = [machine(f"web-{n}", f"host-{n}", domain=(n // 2) % 3) for n in range(6)]
    found = fit(racks + stray, GROUPS, only=WEB)
    assert found.waves_after < found.waves_before
    assert all(id_.startswith("web-") for id_ in found.domains)


def test_hosts_with_two_domains_of_another_group_are_waves_of_their_own() -> None:
    divided = [machine(f"db-{n}", f"host-{n // 2}", domain=n % 2) for n in range(4)]
    stray = [machine(f"web-{n}", f"host-{n}", domain=n % 3) for n in range(6)]
    found = fit(divided + stray, GROUPS, only=WEB)
    assert found.waves_after <= found.waves_before
    assert not {id_ for id_ in found.domains if id_.startswith("db-")}


def test_a_machine_without_a_host_keeps_its_domain_and_a_stopped_one_causes_no_wave() -> None:
    evicted = replace(machine("web-9", domain=2), host=None)
    stopped = machine("web-8", "host-1", domain=1, state=MachineState.STOPPED)
    found = fit([machine("web-0", "host-1"), stopped, evicted], GROUPS)
    assert found == FittedDomains(waves_before=1, waves_after=1)


def test_a_fleet_without_groups_has_nothing_to_fit() -> None:
    assert fit([], {}) == FittedDomains()
    assert fit([machine("alone", group="alone")], GROUPS) == FittedDomains(waves_before=1, waves_after=1)


def test_as_few_machines_as_possible_change() -> None:
    there = [machine(f"web-{n}", f"host-{n}", domain=n % 3) for n in range(9)]
    there += [machine(f"db-{n}", f"host-{n}", domain=0 if n < 2 else n % 2) for n in range(9)]
    found = fit(there, GROUPS)
    assert len(found.domains) < 9


def test_if_not_all_groups_can_be_spread_most_are() -> None:
    pairs = list(combinations(range(6), 2))  # any two hosts have a group of their own
    names = {pair: f"g{pair[0]}{pair[1]}" for pair in pairs}
    there = [
        machine(f"{names[pair]}-{host}", f"host-{host}", group=names[pair], domain=int(host == pair[0]))
        for pair in pairs
        for host in pair
    ]
    there += [machine("web-0", "host-0"), machine("web-1", "host-0", domain=1)]
    found = fit(there, {**GROUPS, **{GroupName(name): group(name, 2) for name in names.values()}})
    assert found.waves_after <= 3
    spread = [len(set(domains(fitted(there, found), name).values())) for name in names.values()]
    assert spread.count(2) >= 9
