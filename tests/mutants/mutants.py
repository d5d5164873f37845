"""The mutants, by the rule that they break."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Engine, event

from forewarn.control.engine.driver_calls import Verb
from forewarn.core.basic_types import (
    ApprovalRule,
    EventId,
    GroupName,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineId,
    MachineName,
    OrderId,
    StageState,
    StepState,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import ArmedDomain, Budget, Waiting
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, HostStep, Order, Stage, Step
from forewarn.core.model.project import Calendar, Opening
from forewarn.core.model.rollout import Rollout
from forewarn.core.orders import departures, reasons, stages
from forewarn.core.policy import Notice, Policy
from forewarn.server.threads.batches import Batches, Outcome
from forewarn.store.batch import Batch, Transaction
from forewarn.store.snapshots import Snapshot
from forewarn.store.store import Store
from tests.mutants.placing import mutant

Real = Callable[..., Any]

SECOND, NOTHING = timedelta(seconds=1), timedelta()
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

EVENTS, LIFECYCLE, STAGES = (
    "unit/core/orders/test_events.py",
    "unit/core/orders/test_lifecycle.py",
    "unit/core/orders/test_stages.py",
)
REASONS, DRAFT, ROLLOUT = (
    "unit/core/orders/test_reasons.py",
    "unit/core/test_draft.py",
    "unit/core/model/test_rollout.py",
)
OPERATING, ORDERS = "integration/service/test_operating.py", "integration/service/test_orders.py"
OUTAGES = "integration/service/test_outages.py"
FENCING, LOST = "unit/core/orders/test_fencing.py", "unit/core/orders/test_lost_hosts.py"
TWICE = "unit/core/orders/test_failed_twice.py"
WHOLE = "unit/core/orders/test_whole_hosts.py"
SERVICE, HOST_HOOKS = "unit/core/orders/test_service.py", "unit/core/orders/test_host_hooks.py"
WINDING_DOWN = "unit/core/orders/test_winding_down.py"
ARMING, GANGS = "unit/core/orders/test_arming.py", "unit/core/rollouts/test_gangs.py"


# Rule 1: notice


@mutant("core.policy:Policy.notice", EVENTS, rule="1")
def notice_is_a_second_short(real: Real, policy: Policy, *args: Any) -> timedelta:
    return real(policy, *args) - SECOND


@mutant("core.orders.events:may_start_at", EVENTS, rule="1")
def an_unapproved_event_starts_a_second_early(real: Real, draft: Draft, announced: Event) -> datetime:
    return max(draft.now, real(draft, announced) - SECOND)


@mutant("core.orders.events:may_start_at", EVENTS, rule="1")
def a_jump_of_the_clock_costs_guests_their_notice(real: Real, draft: Draft, announced: Event) -> datetime:
    return draft.now if announced.approved else announced.not_before


@mutant("core.model.event:Event.awaited", EVENTS, rule="1")
def any_guest_approves_whatever_the_policy(real: Real, announced: Event) -> tuple[MachineName, ...]:
    return real(replace(announced, rule=ApprovalRule.ANY))


@mutant("core.orders.events:_announce_to", EVENTS, OPERATING, rule="1")
def an_emergency_leaves_no_record(
    real: Real, draft: Draft, order: Order, index: int, share: Sequence[Step], notice: Notice
) -> Event:
    return real(draft, order, index, share, replace(notice, promised=notice.ahead))


# Rule 2: status moves forward only; a record for each event that leaves


@mutant("core.orders.events:approve", EVENTS, LIFECYCLE, rule="2")
def an_approval_moves_the_not_before_to_now(real: Real, draft: Draft, known: Event, word: Approval) -> Event:
    return draft.put_event(replace(real(draft, known, word), not_before=draft.now))


@mutant("core.orders.events:end", EVENTS, rule="2")
def an_event_leaves_without_a_record(
    real: Real, draft: Draft, known: Event, kind: Kind, *, why: str, by: str = ""
) -> Event:
    return draft.put_event(replace(known, ended_at=draft.now, why=why))


@mutant("core.orders.events:remove_machine", EVENTS, rule="2")
def a_name_leaves_without_a_record(
    real: Real, draft: Draft, known: Event, machine: MachineId, *, why: str
) -> None:
    left = tuple(named for named in known.resources if named.machine != machine)
    if left:
        draft.put_event(replace(known, resources=left))
    else:
        real(draft, known, machine, why=why)


# Rule 3: one group, one update domain


@mutant("core.orders.events:announce", EVENTS, rule="3")
def two_groups_share_an_event(
    real: Real, draft: Draft, order: Order, index: int, steps: Iterable[Step], notice: Notice
) -> tuple[Event, ...]:
    first, *others = steps
    return real(draft, order, index, (first, *(replace(each, group=first.group) for each in others)), notice)


@mutant("core.orders.events:announce", EVENTS, rule="3")
def two_update_domains_share_an_event(
    real: Real, draft: Draft, order: Order, index: int, steps: Iterable[Step], notice: Notice
) -> tuple[Event, ...]:
    return real(draft, order, index, [replace(each, update_domain=0) for each in steps], notice)


# Rule 4: update domains are not disturbed together


@mutant("core.admission.announcing:other_domains", LIFECYCLE, rule="4")
def update_domains_are_not_compared(real: Real, *_: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.orders.stages:cut", STAGES, rule="4")
def a_host_is_done_in_one_stage(
    real: Real, machines: Iterable[Machine], work: Work, *_: Any
) -> tuple[Stage, ...]:
    return (Stage(state=StageState.QUEUED, steps=tuple(stages.step_of(each, work) for each in machines)),)


@mutant("core.orders.stages:fits", STAGES, LIFECYCLE, rule="4")
def a_latecomer_of_any_update_domain_joins(real: Real, *_: Any) -> bool:
    return True


@mutant("core.admission.announcing:divided", WHOLE, rule="4")
def a_whole_host_may_carry_any_update_domains(real: Real, *_: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.orders.events:_record_together", WHOLE, rule="4")
def work_with_together_leaves_no_record(real: Real, *_: Any) -> None:
    return None


@mutant("core.admission.announcing:other_domains", WHOLE, rule="4")
def work_with_together_does_not_wait(
    real: Real, footprint: Footprint, armed: Mapping[GroupName, Mapping[int, ArmedDomain]], **more: bool
) -> tuple[Waiting, ...]:
    return () if footprint.at_once else real(footprint, armed, **more)


@mutant("core.orders.events:armed_at_once", ARMING, rule="4")
def everything_is_armed_with_its_announcement(real: Real, *_: Any) -> bool:
    return True


@mutant("core.orders.events:arm_at", ARMING, rule="4")
def events_are_armed_a_second_late(real: Real, announced: Event, policy: Policy) -> datetime:
    return real(announced, policy) + SECOND


@mutant("core.orders.arming:blockers", ARMING, rule="4")
def events_are_armed_whatever_else_is_armed(real: Real, *_: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.orders.arming:arm", ARMING, rule="4")
def an_approval_arms_its_event_alone(
    real: Real, draft: Draft, order: Order, announced: Sequence[Event], policy: Policy
) -> tuple[Waiting, ...]:
    for each in announced:
        if each.approved:
            real(draft, order, [each], policy)
    return real(draft, order, [draft.events[each.id] for each in announced], policy)


@mutant("core.orders.stage_announcing:latecomer_deadlock", ARMING, rule="4")
def an_armed_stage_waits_for_blocked_latecomers(real: Real, *_: Any) -> str:
    return ""


@mutant("core.orders.arming:arm", ARMING, rule="4")
def an_event_that_is_not_armed_keeps_its_not_before(
    real: Real, draft: Draft, order: Order, announced: Sequence[Event], policy: Policy
) -> tuple[Waiting, ...]:
    refused = real(draft, order, announced, policy)
    for each in announced:
        moved = draft.events[each.id]
        draft.put_event(replace(moved, not_before=each.not_before))
    return refused


@mutant("core.orders.arming:arm", ARMING, rule="4")
def an_approved_event_starts_unarmed(
    real: Real, draft: Draft, order: Order, announced: Sequence[Event], policy: Policy
) -> tuple[Waiting, ...]:
    refused = real(draft, order, announced, policy)
    return () if all(each.approved for each in announced) else refused


@mutant("core.model.constraints:ArmedDomain.minus", ARMING, rule="4")
def finished_events_still_block_other_domains(real: Real, known: ArmedDomain, over: Event) -> ArmedDomain:
    return known


@mutant("core.orders.arming:record_emergency", ARMING, rule="4")
def an_emergency_ignores_others_without_a_record(real: Real, *_: Any) -> None:
    return None


@mutant("core.admission.announcing:_frozen", GANGS, rule="4")
def any_number_of_machines_is_frozen_together(real: Real, *_: Any, **__: Any) -> None:
    return None


@mutant("core.rollouts.waves:WaveBuilder.fits", ROLLOUT, rule="4")
def a_wave_takes_any_host(real: Real, *_: Any) -> bool:
    return True


# Rule 5: stages start completely


@mutant("core.orders.reasons:unannounced_machines", WHOLE, rule="5")
def work_on_a_whole_host_starts_before_all_events(real: Real, *_: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.orders.stages:replan", WHOLE, rule="5")
def work_on_a_whole_host_begins_again_for_latecomers(real: Real, draft: Draft, order: Order) -> Order:
    planned = real(draft, replace(order, terms=replace(order.terms, whole=False)))
    return replace(planned, terms=order.terms)


@mutant("core.orders.stage_engine:_start_share", LIFECYCLE, rule="5")
def a_stage_starts_in_part(
    real: Real, draft: Draft, order: Order, index: int, announced: tuple[Event, ...]
) -> Order:
    return real(draft, order, index, announced[:1])


@mutant("core.orders.reasons:_not_approved", LIFECYCLE, rule="5")
def one_approval_starts_the_stage(
    real: Real, draft: Draft, announced: tuple[Event, ...]
) -> tuple[Waiting, ...]:
    return () if any(each.approved for each in announced) else real(draft, announced)


@mutant("core.orders.reasons:why_not_started", LIFECYCLE, rule="5")
def a_stage_starts_on_busy_machines(
    real: Real, draft: Draft, order: Order, stage: Stage, announced: tuple[Event, ...], policy: Policy
) -> tuple[Waiting, ...]:
    busy = reasons.other_orders_on(draft, order, stage.steps)
    return tuple(why for why in real(draft, order, stage, announced, policy) if why not in busy)


@mutant("core.orders.steps:running_elsewhere", LIFECYCLE, rule="5")
def a_machine_has_two_running_steps(real: Real, *_: Any) -> Order | None:
    return None


@mutant("core.orders.moves:Slots.is_free", SERVICE, rule="5")
def events_of_an_evacuation_start_without_a_slot(real: Real, *_: Any) -> bool:
    return True


@mutant("core.orders.service:_check_domains", SERVICE, rule="5")
def update_domains_that_restart_together_are_not_refused(real: Real, *_: Any) -> None:
    return None


@mutant("core.orders.host_work:_may_begin", SERVICE, rule="5")
def the_work_on_a_host_begins_at_once(real: Real, *_: Any) -> bool:
    return True


@mutant("core.orders.host_work:is_settled", HOST_HOOKS, rule="hooks")
def machines_come_back_before_the_health_check(real: Real, order: Order) -> bool:
    late = (HostTask.HEALTH, HostTask.UNCORDON)
    return real(replace(order, host_steps=tuple(each for each in order.host_steps if each.task not in late)))


@mutant("core.orders.winding_down:_has_not_started", WINDING_DOWN, rule="abort")
def moves_that_wait_begin_after_an_abort(real: Real, order: Order, stage: Stage, step: Step) -> bool:
    return stage.state is not StageState.STARTED and bool(real(order, stage, step))


@mutant("core.orders.winding_down:_failed_unstarted", WINDING_DOWN, rule="abort")
def moves_that_failed_before_they_started_survive_an_abort(real: Real, *_: Any) -> bool:
    return False


@mutant("core.orders.winding_down:_host_step", WINDING_DOWN, rule="abort")
def hosts_are_worked_on_after_an_abort(
    real: Real, draft: Draft, order: Order, step: HostStep, **_: Any
) -> Any:
    return step


@mutant("core.orders.lifecycle:_advance_stages", WINDING_DOWN, rule="abort")
def stages_are_laid_out_again_after_an_abort(real: Real, draft: Draft, order: Order, policy: Policy) -> Order:
    wound_down = order.terms.winding_down
    anew: Order = real(draft, replace(order, terms=replace(order.terms, winding_down="")), policy)
    return replace(anew, terms=replace(anew.terms, winding_down=wound_down))


@mutant("core.orders.moves:retry_failed", WINDING_DOWN, rule="abort")
def moves_are_retried_after_an_abort(real: Real, draft: Draft, order: Order, *rest: Any) -> Order:
    again: Order = real(draft, replace(order, terms=replace(order.terms, winding_down="")), *rest)
    return replace(again, terms=order.terms)


@mutant("core.orders.stage_engine:_withdraw_stale", SERVICE, rule="11")
def late_events_of_an_evacuation_are_not_withdrawn(real: Real, *_: Any) -> None:
    return None


@mutant("core.orders.moves:Slots.turn", SERVICE, rule="11")
def no_event_of_an_evacuation_waits_for_its_turn(real: Real, *_: Any, **__: Any) -> datetime:
    return datetime(2000, 1, 1, tzinfo=UTC)


# Rule 6: incarnations


@mutant("core.draft:Draft._count_incarnations", DRAFT, rule="6")
def changes_are_not_counted(real: Real, draft: Draft, changed: Iterable[Event]) -> None:
    return


@mutant("core.draft:Draft._count_incarnations", DRAFT, rule="6")
def each_changed_event_is_counted(real: Real, draft: Draft, changed: Iterable[Event]) -> None:
    for each in changed:
        group = draft.groups[each.group]
        draft.groups[group.name] = replace(group, incarnation=group.incarnation + 1)


@mutant("core.draft:visible", DRAFT, rule="6")
def an_approval_is_counted(real: Real, known: Event | None) -> tuple[object, ...] | None:
    seen = real(known)
    return None if known is None or seen is None else (*seen, known.approvals)


# Rule 7: durable answers


@mutant("server.threads.bridge:WorkerCommands.approve", "unit/server/threads/test_worker.py", rule="7")
async def a_guest_is_answered_before_its_approval_is_saved(
    real: Real, commands: Any, machine: MachineId, listed: Sequence[EventId], *, address: str
) -> None:
    waiting = real(commands, machine, listed, address=address)
    waiting.send(None)  # the worker will receive it
    waiting.close()


@mutant("server.threads.worker:Worker.do", "unit/server/threads/test_worker.py", rule="7")
def a_caller_is_answered_before_guests_are_shown_it(real: Real, worker: Any, jobs: Any) -> int:
    worker.catch_up = lambda: None
    done: int = real(worker, jobs)
    del worker.catch_up
    worker.catch_up()
    return done


@mutant("server.threads.batches:Batches.run_jobs", "unit/server/threads/test_batches.py", rule="7")
def a_caller_is_answered_as_if_the_commit_had_not_failed(
    real: Real, batches: Batches, jobs: Sequence[Callable[[Transaction], Any]], **more: Any
) -> list[Outcome]:
    done: list[Any] = []

    def noting(job: Callable[[Transaction], Any], tx: Transaction) -> None:
        done.append(job(tx))

    outcomes: list[Outcome] = real(batches, [partial(noting, job) for job in jobs], **more)
    return [Outcome(result) for result in done] if len(done) == len(outcomes) else outcomes


@mutant("server.threads.batches:Batches._run_one", "unit/server/threads/test_batches.py", rule="7")
def a_job_that_fails_is_saved_all_the_same(
    real: Real, batches: Batches, batch: Batch, job: Callable[[Transaction], Any]
) -> Outcome:
    with batch.savepoint() as tx:
        try:
            return Outcome(job(tx))
        except Exception as error:  # noqa: BLE001 - any error of the job
            return Outcome(error=error)


@mutant("store.store:Store.batch", "contract/test_store.py", rule="7")
def a_batch_is_committed_with_the_next_one(real: Real, store: Store) -> Iterator[Batch]:
    _uncommitted.close()
    with ExitStack() as opened:
        yield opened.enter_context(contextmanager(real)(store))
        _uncommitted.push(opened.pop_all())


_uncommitted = ExitStack()


@mutant("store.opening.engines:_sqlite_engine", "contract/test_store_opening.py", rule="7")
def a_commit_is_not_on_disk(real: Real, *args: Any, **more: Any) -> Engine:
    engine: Engine = real(*args, **more)
    event.listen(engine, "connect", lambda opened, _: opened.execute("PRAGMA synchronous = NORMAL"))
    return engine


# Rule 8: steps


@mutant("core.orders.host_work:advance", "unit/core/orders/test_verified_restarts.py", rule="8")
def a_machine_that_restarts_with_its_host_is_not_verified(
    real: Real, draft: Draft, order: Order, policy: Policy
) -> Order:
    return real(draft, order, replace(policy, verifying_restarts=frozenset()))


@mutant("control.engine.driver_attempts:DriverAttempts._verb", ORDERS, rule="8")
def a_step_is_begun_whenever_it_is_looked_at(real: Real, *_: Any) -> Verb:
    return Verb.BEGIN


@mutant("core.orders.interventions:_tried_again", "unit/core/orders/test_interventions.py", rule="8")
def a_retry_runs_finished_steps_again(real: Real, step: Step) -> Step:
    return real(replace(step, state=StepState.FAILED) if step.state is StepState.DONE else step)


@mutant("core.orders.reports:_running_step", "unit/core/orders/test_reports.py", rule="8")
def a_late_report_touches_a_finished_step(real: Real, draft: Draft, attempt: AttemptId) -> Step | None:
    mine = draft.orders[attempt.order].steps
    return next((step for step in mine if step.machine == attempt.subject), None)


@mutant("core.orders.reports:step_failed", "unit/core/orders/test_reports.py", rule="8")
def a_failure_is_neither_recorded_nor_shown(real: Real, *_: Any, **__: Any) -> None:
    return


@mutant("core.orders.placement:why_unsuitable", "unit/core/orders/test_moves.py", rule="5")
def a_move_goes_to_a_host_that_takes_no_machines(real: Real, *_: Any) -> str:
    return ""


@mutant("core.orders.steps:_is_reached", "unit/core/fleet/test_importing.py", rule="8")
def a_step_that_was_done_outside_is_done_again(real: Real, *_: Any, **__: Any) -> bool:
    return False


# Rule 9: groups are isolated


@mutant("control.orders.guest_use_cases:_events_known_to", ORDERS, rule="9")
def a_guest_of_another_group_approves(
    real: Real, tx: Snapshot, machine: MachineId, wanted: Sequence[EventId]
) -> tuple[Machine, dict[EventId, Event]]:
    caller = tx.rules.machine_by_id(machine)
    known = [tx.work.event(EventId(each.upper())) for each in wanted]
    if caller is None or None in known:
        return real(tx, machine, wanted)
    return caller, {each.id: each for each in known if each is not None}


@mutant("core.access:check_change", "unit/core/test_access.py", rule="9")
def a_project_cancels_a_platform_order(real: Real, *_: Any, **__: Any) -> None:
    return


@mutant("core.redaction:redact_operator_texts", "unit/core/test_disclosure.py", rule="9")
def a_project_reads_an_operators_text(real: Real, text: str) -> str:
    return text


@mutant("store.reads.prefetching:_named", "integration/api/test_hidden_names.py", rule="9")
def names_are_looked_up_among_the_machines_of_all_projects(real: Real, project: Any, calls: Any) -> Any:
    return real(None, [replace(call, project=None) for call in calls])


# Rule 10: reasons, and idempotent planning


@mutant("core.orders.lifecycle:advance", LIFECYCLE, rule="10")
def reasons_are_dropped(real: Real, draft: Draft, order: OrderId, *, policy: Policy) -> Order:
    return draft.put_order(replace(real(draft, order, policy=policy), waiting=()))


@mutant("core.orders.events:approve", EVENTS, rule="10")
def repeated_approvals_are_recorded_again(
    real: Real, draft: Draft, known: Event, approval: Approval
) -> Event:
    return real(draft, replace(known, approvals=()), approval)


# Rule 11: no late starts


@mutant("core.orders.stage_engine:_stale_at", LIFECYCLE, rule="11")
def the_last_not_before_of_a_stage_decides(
    real: Real, announced: tuple[Event, ...], policy: Policy
) -> datetime:
    return max(each.not_before for each in announced) + policy.stale_after


@mutant("core.orders.stage_engine:_stale_at", LIFECYCLE, rule="11")
def stale_events_are_never_withdrawn(real: Real, *_: Any) -> datetime:
    return NEVER


# Rule 13: fencing first


@mutant("core.model.order:Order.is_fenced", FENCING, rule="13")
def a_failed_host_needs_no_fence(real: Real, order: Order) -> bool:
    return True


@mutant("core.model.order:Order.is_fenced", FENCING, rule="13")
def a_fence_that_was_begun_is_enough(real: Real, order: Order) -> bool:
    return real(order) or bool(order.running_host_steps)


@mutant("core.orders.lost_hosts:is_stranded", LOST, rule="13")
def machines_of_lost_hosts_are_moved(real: Real, *_: Any) -> bool:
    return False


@mutant("core.orders.fencing:_record", FENCING, rule="13")
def a_fencing_confirmation_is_not_recorded(real: Real, *_: Any, **__: Any) -> None:
    return


@mutant("core.orders.lost_hosts:mark_if_overdue", LOST, rule="13")
def no_host_is_ever_lost(real: Real, draft: Draft, order: Order, policy: Policy) -> Order:
    return order


@mutant("core.orders.host_failures:is_superseded", TWICE, rule="13")
def an_older_fence_of_a_host_that_fails_again_is_enough(real: Real, *_: Any) -> bool:
    return False


@mutant("core.orders.superseding:hand_over", TWICE, rule="13")
def a_recovery_that_fails_stays_with_the_older_failure(real: Real, *_: Any, **__: Any) -> bool:
    return False


@mutant("core.orders.superseding:_take_over_arrivals", TWICE, rule="13")
def a_machine_that_starts_on_a_failing_host_is_started_elsewhere(real: Real, *_: Any, **__: Any) -> None:
    return


@mutant("core.orders.departures:remove_from_scheduled", FENCING, rule="13")
def a_machine_to_terminate_leaves_its_unfenced_host(
    real: Real, draft: Draft, machine: Machine, *, why: str, keep: OrderId
) -> None:
    for order in departures.open_orders_with(draft, machine.id):
        if order.id != keep:
            departures.remove_machine(draft, order, machine.id, why=why)


@mutant("core.orders.superseding:end_departures", FENCING, rule="13")
def a_failure_waits_for_machines_that_leave_a_fenced_host(real: Real, *_: Any) -> None:
    return


# Rule 12: never unannounced


@mutant("core.orders.stage_announcing:_is_announced", LIFECYCLE, rule="12")
def announced_work_starts_without_an_event_if_no_guest_listens(
    real: Real, draft: Draft, order: Order, affected: tuple[Step, ...]
) -> bool:
    return real(draft, replace(order, announced_at=None), affected)


@mutant("core.guests.enablement:idle_cutoff", "unit/core/guests/test_enablement.py", rule="12")
def an_absence_counts_as_idle_time(real: Real, now: datetime, _: object, *, policy: Policy) -> datetime:
    return real(now, (), policy=policy)


@mutant("server.threads.time_keeping:TimeWatch._watch_presence", OUTAGES, rule="12")
def absences_are_not_noticed(real: Real, watch: object) -> None:
    return


@mutant("core.guests.notice:_was_short", "unit/core/orders/test_judging.py", rule="promises")
def notice_is_never_late(real: Real, *_: Any) -> bool:
    return False


# Prechecks


@mutant("core.orders.move_prechecks:waiting", "unit/core/orders/test_move_prechecks.py", rule="prechecks")
def moves_are_announced_before_their_driver_has_agreed(real: Real, *_: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.orders.move_prechecks:_stays_live", "unit/core/orders/test_move_prechecks.py", rule="prechecks")
def a_machine_that_is_live_only_is_redeployed(real: Real, *_: Any) -> bool:
    return False


@mutant("core.orders.moves:_kept_live", "unit/core/orders/test_ladder.py", rule="prechecks")
def a_live_only_machine_whose_move_fails_is_left_as_it_is(
    real: Real, draft: Draft, order: Order, step: Step, policy: object
) -> Step:
    return step


# Windows, budgets, holds, deferrals, placement


@mutant(
    "core.admission.timing:JointCalendar._openings",
    "unit/core/admission/test_windows.py",
    OUTAGES,
    rule="windows",
)
def windows_open_by_service_time_that_is_ahead(
    real: Real, joint: object, calendar: Calendar, until: datetime
) -> list[Opening]:
    since: datetime = joint.since  # type: ignore[attr-defined]
    return calendar.openings(since, until)


@mutant("core.admission.timing:Timing.why_not_start", REASONS, rule="windows")
def work_starts_outside_its_window(real: Real, *_: Any, **__: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.admission.timing:Timing.why_not_announce", REASONS, rule="windows")
def work_is_announced_outside_its_window(real: Real, *_: Any, **__: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.model.project:Calendar._blackouts", "unit/core/admission/test_windows.py", rule="windows")
def blackout_days_are_ignored(real: Real, *_: Any) -> Iterator[object]:
    return iter(())


@mutant("core.admission.announcing:short_budgets", REASONS, rule="budgets")
def budgets_are_ignored(real: Real, *_: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.model.constraints:Budget.unwell", "unit/core/admission/test_announcing.py", rule="budgets")
def a_machine_under_an_event_counts_as_healthy(real: Real, budget: Budget) -> frozenset[MachineId]:
    return frozenset(budget.down)


@mutant("core.orders.reasons:holds_on", REASONS, rule="holds")
def holds_are_ignored(real: Real, *_: Any) -> tuple[Waiting, ...]:
    return ()


@mutant("core.orders.events:_deferred_until", EVENTS, rule="deferral")
def a_guest_defers_for_as_long_as_it_likes(
    real: Real, known: Event, wanted: timedelta, *, limit: timedelta, latest: datetime | None
) -> datetime:
    return real(known, wanted, limit=max(limit, wanted) if limit else limit, latest=latest)


@mutant("core.admission.timing:Timing.latest", LIFECYCLE, rule="deferral")
def a_guest_defers_past_its_window(real: Real, *_: Any, **__: Any) -> datetime | None:
    return None


@mutant("core.orders.placement:_is_sound", "unit/core/orders/test_placement.py", rule="placement")
def a_cordoned_host_is_a_target(real: Real, draft: Draft, name: HostName) -> bool:
    host = draft.hosts.get(name)
    return real(draft, name) or (host is not None and host.state is HostState.CORDONED)


@mutant("core.orders.placement:is_usable", "unit/core/orders/test_reachability.py", rule="placement")
def a_host_that_cannot_be_reached_is_a_target(real: Real, draft: Draft, name: HostName) -> bool:
    host = draft.hosts.get(name)
    return real(draft, name) or (host is not None and host.unreachable_since is not None)


@mutant(
    "core.orders.placement:waiting_for_reachable_host",
    "unit/core/orders/test_reachability.py",
    rule="placement",
)
def a_machine_without_a_reachable_target_does_not_wait(real: Real, *_: Any, **__: Any) -> tuple[()]:
    return ()


@mutant(
    "core.rollouts.machine_health:stopped_outside", "unit/core/rollouts/test_machine_health.py", rule="health"
)
def machines_that_are_off_are_healthy(real: Real, *_: Any) -> tuple[()]:
    return ()


@mutant(
    "core.rollouts.evacuation:_larger", "unit/core/rollouts/test_interchangeable_hosts.py", rule="placement"
)
def a_wave_empties_all_interchangeable_hosts(real: Real, hosts: int) -> int:
    return hosts


@mutant(
    "core.rollouts.interchangeable_hosts:homes",
    "unit/core/rollouts/test_interchangeable_hosts.py",
    rule="placement",
)
def hosts_that_are_being_emptied_are_homes(
    real: Real, rollout: Rollout, emptied: Sequence[HostName]
) -> dict[HostName, tuple[HostName, ...]]:
    return {host: alike for alike in rollout.alike for host in alike if host in emptied}


@mutant("core.orders.placement:best_host", "unit/core/orders/test_placement.py", rule="placement")
def machines_go_elsewhere_than_to_their_homes(
    real: Real, draft: Draft, machine: Machine, *, order: Order | None = None, **more: Any
) -> HostName | None:
    homeless = None if order is None else replace(order, terms=replace(order.terms, homes=()))
    target: HostName | None = real(draft, machine, order=homeless, **more)
    return target


# Fairness between callers


@mutant("server.threads.jobs:Jobs._next", "unit/server/threads/test_jobs.py", rule="fairness")
def guests_wait_for_all_earlier_jobs(real: Real, jobs: Any, **_: Any) -> Any:
    return real(jobs, after=())


@mutant("core.text_formats:_common_prefix", "unit/core/test_text_formats.py", rule="spelling")
def a_differing_letter_counts_as_part_of_a_common_prefix(real: Real, one: str, other: str) -> int:
    return min(int(real(one, other)) + 1, len(one), len(other))
