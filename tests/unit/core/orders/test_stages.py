"""Stages of an order: no stage has two update domains of one group (rules 3 and 5)."""

from dataclasses import replace

from forewarn.core.basic_types import Action, HostName, MachineState, StageState, StepState, Work
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Stage, Step
from forewarn.core.orders import departures, stages
from forewarn.core.orders.steps import all_finished
from tests.unit.slices import HOUR, Fleet, machine


def names(stage: Stage) -> list[str]:
    return [step.name for step in stage.steps]


def cut(*machines: Machine, work: Work = Work.REBOOT, **policies: GroupPolicy) -> list[list[str]]:
    groups = Fleet(*machines, policies=policies).draft.groups
    return [names(stage) for stage in stages.cut(machines, work, groups)]


def steps(*machines: Machine) -> tuple[Step, ...]:
    return tuple(stages.step_of(machine, Work.REBOOT) for machine in machines)


def test_machines_of_one_update_domain_are_one_stage() -> None:
    assert cut(machine("web-0"), machine("web-1")) == [["web-0", "web-1"]]


def test_two_update_domains_of_a_group_are_two_stages_the_lowest_first() -> None:
    assert cut(machine("web-0", domain=4), machine("web-1", domain=2)) == [["web-1"], ["web-0"]]


def test_groups_share_stages_whatever_their_update_domains_are_called() -> None:
    both = cut(machine("web-0", domain=3), machine("db-0", domain=1), machine("db-1", domain=2))
    assert both == [["web-0", "db-0"], ["db-1"]]


def test_a_step_knows_the_group_and_update_domain_of_its_machine() -> None:
    step = stages.step_of(machine("web-0", domain=3), Work.REBOOT)
    assert (step.machine, step.name, step.group, step.update_domain) == ("web-0", "web-0", "web", 3)


def test_a_machine_fits_a_stage_of_its_own_update_domain_or_without_its_group() -> None:
    stage = Stage(state=StageState.ANNOUNCED, steps=steps(machine("web-0", domain=1)))
    (same, other, stranger) = steps(machine("web-1", domain=1), machine("web-2", domain=2), machine("db-0"))
    assert [stages.fits(stage, step, GroupPolicy()) for step in (same, other, stranger)] == [
        True,
        False,
        True,
    ]


def test_a_moot_step_does_not_exclude_other_update_domains() -> None:
    (gone, comes) = steps(machine("web-0", domain=1), machine("web-1", domain=2))
    stage = Stage(state=StageState.ANNOUNCED, steps=(replace(gone, state=StepState.MOOT),))
    assert stages.fits(stage, comes, GroupPolicy())


def test_all_update_domains_of_a_gang_are_one_stage() -> None:
    machines = (machine("web-0"), machine("web-1", domain=1), machine("db-0"), machine("db-1", domain=1))
    assert cut(*machines, web=GroupPolicy(gang=True)) == [["web-0", "web-1", "db-0"], ["db-1"]]


def test_as_many_freezes_as_a_group_permits_form_one_stage() -> None:
    machines = (machine("web-0"), machine("web-1", domain=1))
    two, one = GroupPolicy(freezes_at_once=2), GroupPolicy(freezes_at_once=1)
    assert cut(*machines, work=Work.FREEZE, web=two) == [["web-0", "web-1"]]
    assert cut(*machines, work=Work.FREEZE, web=one) == [["web-0"], ["web-1"]]
    assert cut(*machines, work=Work.REBOOT, web=two) == [["web-0"], ["web-1"]]


def test_a_machine_fits_a_stage_of_its_gang_or_of_permitted_freezes() -> None:
    stage = Stage(state=StageState.ANNOUNCED, steps=steps(machine("web-0")))
    step = stages.step_of(machine("web-1", domain=1), Work.FREEZE)
    fit = [GroupPolicy(gang=True), GroupPolicy(freezes_at_once=2), GroupPolicy(freezes_at_once=1)]
    assert [stages.fits(stage, step, policy) for policy in fit] == [True, True, False]


def test_a_machine_that_returns_after_a_failed_step_gets_the_next_attempt() -> None:
    """Rule 8: attempt ids are unique."""
    fleet = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    order = fleet.maintain()
    fleet.pass_(HOUR / 4)
    fleet.fail(order.id)
    here = fleet.machine("web-0")
    departures.remove_from_host_orders(fleet.draft, here, why="moved")
    fleet.draft.put_machine(replace(here, host=HostName("host-2")))
    fleet.advance(order.id)
    fleet.draft.put_machine(here)
    (back,) = stages.replan(fleet.draft, fleet.draft.orders[order.id]).stages[-1].steps
    assert (back.name, back.attempt) == ("web-0", 2)


def test_a_machine_that_arrives_is_planned_in_a_later_stage() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    fleet.draft.put_machine(machine("web-1", domain=1))
    assert list(map(names, stages.replan(fleet.draft, order).stages)) == [["web-0"], ["web-1"]]


def test_a_handled_machine_is_not_planned_again() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    order = fleet.maintain()
    assert stages.replan(fleet.draft, order) == order


def test_a_machine_with_a_moot_step_is_planned_again_if_it_is_on_the_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = fleet.maintain()
    moot = replace(order.stages[0].steps[1], state=StepState.MOOT)
    left = stages.put_steps(order, 0, {moot.machine: moot})
    assert list(map(names, stages.replan(fleet.draft, left).stages)) == [["web-0", "web-1"], ["web-1"]]


def test_stopped_and_leaving_machines_are_not_part_of_host_work() -> None:
    stopped = machine("web-1", state=MachineState.STOPPED)
    fleet = Fleet(machine("web-0"), stopped, machine("web-2"))
    fleet.order("web-2", Action.TERMINATE)
    assert [step.name for step in fleet.maintain().steps] == ["web-0"]


def test_only_announced_and_started_stages_are_active() -> None:
    order = Fleet(machine("web-0"), machine("web-1", domain=1)).maintain()
    for state, active in zip(StageState, ([], [0], [0], []), strict=True):
        assert (
            list(stages.active(stages.put_stage(order, 0, replace(order.stages[0], state=state)))) == active
        )


def test_only_done_and_moot_steps_are_finished() -> None:
    (step,) = steps(machine("web-0"))
    settled = {state for state in StepState if all_finished([replace(step, state=state)])}
    assert settled == {StepState.DONE, StepState.MOOT}
    assert all_finished([])
