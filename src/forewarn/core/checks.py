"""The rules that always hold, as code, by their numbers in docs/explanation/rules.md.

The checks look at the whole fleet before and after one transaction and share no code with what makes the
changes, so that the two can be held against each other.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from forewarn.core.catalogue import ACTIONS
from forewarn.core.copies import replace
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Stage
from forewarn.core.model.promise import PromiseCounts
from forewarn.core.model.record import Record
from forewarn.core.model.slice import Slice
from forewarn.core.model.windows import Calendar
from forewarn.core.policy import Policy
from forewarn.core.words import (
    EXTERNAL,
    HINTS,
    Action,
    EventId,
    EventStatus,
    EventType,
    GroupName,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineId,
    MachineState,
    OrderId,
    Source,
    StageKind,
    StageState,
    StepState,
    Work,
)

MOMENT, SECOND, MINUTE = timedelta(microseconds=1), timedelta(seconds=1), timedelta(minutes=1)
DAY = timedelta(days=1)

_OF_PROMISES = (Kind.EVENT_STARTED, Kind.NOTICE_LATE, Kind.NOTICE_NEVER, Kind.PROMISE_BROKEN)
_MOVING = frozenset({StageKind.EVACUATE, StageKind.RETURN})
_MOVES_AT_ONCE = 2
_PLANNED = (Action.MAINTENANCE, Action.SERVICE)
LEFT = frozenset({Kind.EVENT_FINISHED, Kind.EVENT_CANCELLED, Kind.EVENT_WITHDRAWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The whole fleet before and after one transaction, and the records it wrote."""

    before: Slice
    after: Slice
    records: Sequence[Record]
    now: datetime
    policy: Policy
    # Of which orders each machine has heard at any time before: that leaves the fleet with the events.
    announced: Collection[tuple[OrderId, MachineId]] = ()
    # What was added to the counts of promises, whoever's and in whatever month; None: nobody has looked.
    counted: PromiseCounts | None = None


def violations(change: Change) -> list[str]:
    """Return which rules a change breaks, and how."""
    rules = (
        notice_is_kept,
        events_only_move_forward,
        what_leaves_has_a_record,
        resources_are_of_one_group_and_domain,
        update_domains_are_not_armed_together,
        events_are_armed_in_time,
        what_moves_has_a_record,
        hints_never_start,
        stages_start_whole,
        stages_have_one_domain_of_a_group,
        whole_hosts_are_done_in_one_go,
        hosts_are_worked_on_with_everybody_told,
        moves_go_a_few_at_a_time,
        cordons_are_given_back,
        machines_are_free_when_their_stage_starts,
        machines_have_one_step_at_a_time,
        machines_move_to_sound_hosts,
        hosts_are_fenced_before_others_take_over,
        incarnations_count_changes,
        finished_steps_stay_finished,
        attempts_are_begun_once,
        what_was_announced_stays_announced,
        windows_are_heeded,
        budgets_are_heeded,
        promises_are_counted,
    )
    return [f"{rule.__name__}: {what}" for rule in rules for what in rule(change)]


def notice_is_kept(change: Change) -> Iterator[str]:
    """Rules 1 and 11: only an approval or a failed host starts early; no notice is short, no start late.

    An emergency's notice may be, and is recorded as a broken promise.
    """
    for event in change.after.events.values():
        order = change.after.orders[event.order]
        known = change.before.events.get(event.id)
        if order.action is Action.FAIL:
            continue
        short = event.not_before - event.announced_at < _least_notice(event, order, change)
        broken = bool(order.terms.emergency) and any(
            record.event == event.id and record.kind == Kind.PROMISE_BROKEN for record in change.records
        )
        if known is None and short and not broken:
            yield f"{event.id} has {event.not_before - event.announced_at} of notice"
        started = event.status is EventStatus.STARTED
        starts = started and (known is None or known.status is EventStatus.SCHEDULED)
        if starts and not event.approved and change.now < event.not_before:
            yield f"{event.id} started {event.not_before - change.now} early"
        if starts and change.now >= event.not_before + change.policy.stale_after:
            yield f"{event.id} was sprung on its guests {change.now - event.not_before} late"


def _least_notice(event: Event, order: Order, change: Change) -> timedelta:
    """Return the minimum of a type, or what operators have set for groups that never listened."""
    least, unheard = change.policy.notice(event.type), change.policy.unheard_notice
    listened = event.group in change.before.groups and change.before.groups[event.group].heard
    return least if unheard is None or order.source is Source.USER or listened else min(least, unheard)


def promises_are_counted(change: Change) -> Iterator[str]:
    """What became of promises is counted as the history has it, each machine once."""
    if change.counted is None:
        return
    said = {kind: [record for record in change.records if record.kind == kind] for kind in _OF_PROMISES}
    recorded = PromiseCounts(
        late=sum(map(_names_in, said[Kind.NOTICE_LATE])),
        never=sum(map(_names_in, said[Kind.NOTICE_NEVER])),
        broken=len(said[Kind.PROMISE_BROKEN]),
    )
    found = replace(change.counted, kept=0)
    if found != recorded:
        yield f"{found} is counted, {recorded} recorded"
    gone = [(event, _gone_from(event, change)) for event in change.before.events.values() if not event.judged]
    sure = sum(names for event, names in gone if _fell_due(event, event.started_at))
    # What starts and ends at once: who leaves it may do so before or after.
    starts = {record.event for record in said[Kind.EVENT_STARTED]}
    perhaps = sum(names for event, names in gone if event.id in starts and _fell_due(event, change.now))
    if not sure <= change.counted.judged <= sure + perhaps:
        left = f"{sure} to {sure + perhaps}"
        yield f"{change.counted.judged} machines are judged, {left} have left a started event"


def _gone_from(event: Event, change: Change) -> int:
    after = change.after.events.get(event.id)
    return len(event.resources) - (0 if after is None else len(after.resources))


def _fell_due(event: Event, started_at: datetime | None) -> bool:
    if started_at is None:
        return False
    return started_at > event.announced_at and event.not_before > event.announced_at


def _names_in(record: Record) -> int:
    return len(record.reason.partition(": ")[2].split(", "))


def events_only_move_forward(change: Change) -> Iterator[str]:
    """Rule 2: a status only moves forward, and a promise is not moved to an earlier time."""
    for id_, event in change.after.events.items():
        known = change.before.events.get(id_)
        if known is None:
            continue
        if known.status is EventStatus.STARTED and event.status is EventStatus.SCHEDULED:
            yield f"{id_} went back to Scheduled"
        if event.not_before < known.not_before:
            yield f"{id_} was moved to an earlier time"


def what_leaves_has_a_record(change: Change) -> Iterator[str]:
    """Rule 2: what leaves the document has a record that says why."""
    written = {(record.event, record.kind): record for record in change.records}
    for id_, event in change.before.events.items():
        after = change.after.events.get(id_)
        if after is None and not any((id_, kind) in written and written[id_, kind].reason for kind in LEFT):
            yield f"{id_} left without a record"
        fewer = after is not None and len(after.resources) < len(event.resources)
        if fewer and (id_, Kind.EVENT_LEFT) not in written:
            yield f"a name left {id_} without a record"


def resources_are_of_one_group_and_domain(change: Change) -> Iterator[str]:
    """Rule 3: all Resources of an event are of one group and one update domain, and there is one at least."""
    for event in change.after.events.values():
        if not event.resources:
            yield f"{event.id} names nobody"
        for named in event.resources:
            machine = change.after.machines[named.machine]
            if (machine.group, machine.update_domain) != (event.group, event.update_domain):
                yield f"{event.id} names {named.name} of {machine.group}/{machine.update_domain}"


def update_domains_are_not_armed_together(change: Change) -> Iterator[str]:
    """Rule 4: platform work that can wait is not armed beside another update domain.

    Those of one host may be, where an operator said `together`, and an emergency may, beside anything: both
    are recorded as a broken promise. So may those of a gang, and as many Freezes as the group says.
    """
    by_group = _by_group(change.after)
    broken = {record.event for record in change.records if record.kind == Kind.PROMISE_BROKEN}
    for event in _newly_armed(change):
        order = change.after.orders[event.order]
        if not ACTIONS[order.action].can_wait:
            continue
        for other in by_group[event.group]:
            if other.update_domain == event.update_domain or not _was_armed_before(other, event, change):
                continue
            if _lets_freeze(change.after, event, other) or change.after.groups[event.group].policy.gang:
                continue
            # What is done together was recorded when it was announced.
            together = order.terms.together and other.order == event.order
            said = event.id in broken or (together and event.id in change.before.events)
            if not said or not (together or order.terms.emergency):
                yield f"{event.id} was armed beside {other.id} of domain {other.update_domain}"


def _lets_freeze(fleet: Slice, *events: Event) -> bool:
    """Return whether events are Freezes, and all armed ones of their group within what that says."""
    group = events[0].group
    if any(event.type is not EventType.FREEZE for event in events):
        return False
    armed = (event for event in fleet.events.values() if event.group == group and event.armed_at is not None)
    frozen = sum(len(event.resources) for event in armed if event.type is EventType.FREEZE)
    return frozen <= fleet.groups[group].policy.freezes_at_once


def _newly_armed(change: Change) -> Iterator[Event]:
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.armed_at is not None and (known is None or known.armed_at is None):
            yield event


def _was_armed_before(other: Event, event: Event, change: Change) -> bool:
    """Return whether one event kept others away when another was armed."""
    known = change.before.events.get(other.id)
    if other.armed_at is None or (known is not None and known.armed_at is not None):
        return other.armed_at is not None
    if known is None:
        return other.number < event.number or event.id in change.before.events
    # Both are armed now: if either had to wait for the other, it should have.
    return ACTIONS[change.after.orders[other.order].action].can_wait


def events_are_armed_in_time(change: Change) -> Iterator[str]:
    """Rule 4: an event is armed once, not before its last minutes or an approval, and before it starts."""
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.status is EventStatus.STARTED and event.armed_at is None:
            yield f"{event.id} started and was not armed"
        if known is not None and known.armed_at not in (None, event.armed_at):
            yield f"{event.id} was armed at {known.armed_at}, and is armed at {event.armed_at}"
    for event in _newly_armed(change):
        left = event.not_before - change.now
        waited = event.approved or event.postponed is not None
        # NotBefore is a whole second.
        if not waited and left >= change.policy.notice(event.type) + SECOND:
            yield f"{event.id} was armed {left} before its NotBefore"


def what_moves_has_a_record(change: Change) -> Iterator[str]:
    """Rule 4: a NotBefore moves because a guest asked for it, or for others; a record says why."""
    said = {(record.event, record.kind) for record in change.records if record.reason}
    for id_, event in change.after.events.items():
        known = change.before.events.get(id_)
        if known is None or known.not_before == event.not_before:
            continue
        if not said & {(id_, Kind.EVENT_POSTPONED), (id_, Kind.EVENT_DEFERRED)}:
            yield f"{id_} was moved from {known.not_before} to {event.not_before} without a record"


def hints_never_start(change: Change) -> Iterator[str]:
    """What only recommends something is never started, never approved, and has no step."""
    for event in change.after.events.values():
        if event.type not in HINTS:
            continue
        if event.status is not EventStatus.SCHEDULED or event.approvals:
            yield f"{event.id} only recommends something, and is {event.status} with {event.approvals}"
        if change.after.orders[event.order].steps:
            yield f"{event.order} only recommends something, and has steps"


def stages_start_whole(change: Change) -> Iterator[str]:
    """Rule 5: no event of a stage starts without the others, unless its machines only move."""
    states: dict[tuple[str, int], set[EventStatus]] = {}
    for event in change.after.events.values():
        kind = change.after.orders[event.order].stages[event.stage].kind if event.type not in HINTS else None
        if kind in _MOVING:
            continue
        states.setdefault((event.order, event.stage), set()).add(event.status)
    for (order, stage), found in states.items():
        if len(found) > 1:
            yield f"stage {stage} of {order} is half started"


def stages_have_one_domain_of_a_group(change: Change) -> Iterator[str]:
    """Rule 4: no stage that guests know of disturbs two update domains of one group, `together` aside."""
    for order in change.after.orders.values():
        for stage in order.stages:
            if stage.state is StageState.QUEUED or order.terms.together or stage.kind in _MOVING:
                continue
            domains: dict[GroupName, set[int]] = {}
            told = [step for step in stage.steps if step.state is not StepState.MOOT]
            for step in told:
                domains.setdefault(step.group, set()).add(step.update_domain)
            for group in (group for group, its in domains.items() if len(its) > 1):
                policy, mine = change.after.groups[group].policy, [x for x in told if x.group == group]
                frozen = all(step.work is Work.FREEZE for step in mine)
                if not policy.gang and not (frozen and len(mine) <= policy.freezes_at_once):
                    yield f"a stage of {order.id} disturbs two update domains of {group}"


def whole_hosts_are_done_in_one_go(change: Change) -> Iterator[str]:
    """Rule 5: work on a whole host begins once, and every machine that the host carries then was told."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        if not (order.terms.whole or order.terms.together):
            continue
        begun = _begun_on_host(order)
        if len(begun) > 1:
            yield f"{order.id} on the whole of {order.host} began twice"
        if not begun or (known and _begun_on_host(known)):
            continue
        told = {step.machine for step in begun[0].steps if step.state is not StepState.MOOT}
        for machine in change.after.machines.values():
            carried = machine.host == order.host and machine.state is not MachineState.STOPPED
            if carried and machine.id not in told:
                yield f"{order.id} began on the whole of {order.host}, and {machine.name} was not told"


def _begun_on_host(order: Order) -> list[Stage]:
    return [stage for stage in order.stages if stage.started_at is not None and stage.kind not in _MOVING]


def hosts_are_worked_on_with_everybody_told(change: Change) -> Iterator[str]:
    """Rule 5: as the work on a host begins, all on it have a started event, of one domain of each group."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        begins = _begun_on_host(order) and not (known and _begun_on_host(known))
        if order.action is not Action.SERVICE or not begins:
            continue
        started = _named_in_started(change.after, order)
        domains: dict[GroupName, set[int]] = {}
        for machine in change.after.machines.values():
            if machine.host != order.host or machine.state is MachineState.STOPPED:
                continue
            domains.setdefault(machine.group, set()).add(machine.update_domain)
            if machine.id not in started:
                yield f"work on {order.host} began, and {machine.name} has no started event"
        for group, found in domains.items():
            exempt = order.terms.together or change.after.groups[group].policy.gang
            if len(found) > 1 and not exempt:
                yield f"work on {order.host} began, which carries update domains {sorted(found)} of {group}"


def _named_in_started(fleet: Slice, order: Order) -> set[MachineId]:
    mine = (event for event in fleet.events.values() if event.order == order.id)
    started = (event for event in mine if event.status is EventStatus.STARTED)
    return {named.machine for event in started for named in event.resources}


def moves_go_a_few_at_a_time(change: Change) -> Iterator[str]:
    """No more machines leave a host together than it says, or two."""
    for order in change.after.orders.values():
        host = change.after.hosts[order.host] if order.host is not None else None
        at_once = (host.at_once if host is not None else None) or _MOVES_AT_ONCE
        for stage in order.stages if order.driver != EXTERNAL else ():
            moving = [step for step in stage.steps if step.state is StepState.RUNNING]
            if stage.kind in _MOVING and len(moving) > at_once:
                yield f"{len(moving)} machines leave {order.host} at once"


def cordons_are_given_back(change: Change) -> Iterator[str]:
    """A host is cordoned for an order only as long as that is open."""
    for host in change.after.hosts.values():
        if host.cordoned_for is not None and host.cordoned_for not in change.after.orders:
            yield f"{host.name} is cordoned for {host.cordoned_for}, which is over"


def machines_are_free_when_their_stage_starts(change: Change) -> Iterator[str]:
    """Rule 5: an event does not start while a step of another order runs on a machine that it names."""
    busy = {
        step.machine: order.id
        for order in change.before.orders.values()
        for step in order.steps
        if step.state is StepState.RUNNING and step in change.after.orders.get(order.id, order).steps
    }
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.status is not EventStatus.STARTED or (known and known.status is EventStatus.STARTED):
            continue
        # A failed host waits for none.
        if change.after.orders[event.order].action is Action.FAIL:
            continue
        for named in event.resources:
            if busy.get(named.machine, event.order) != event.order:
                yield f"{event.id} started while {named.name} was in the hands of {busy[named.machine]}"


def machines_move_to_sound_hosts(change: Change) -> Iterator[str]:
    """A machine that moves goes to a host that is neither cordoned nor degraded nor failed."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        before = _begun(known)
        for step in order.steps:
            if step.target is None or (step.machine, step.begun_at) in before:
                continue
            state = change.after.hosts[step.target].state
            if step.state is StepState.RUNNING and state is not HostState.OK:
                yield f"{step.name} goes to {step.target}, which is {state}"


def hosts_are_fenced_before_others_take_over(change: Change) -> Iterator[str]:
    """Rule 13: no machine leaves a failed or lost host unless that is fenced, or somebody vouches for it."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        fenced = any(
            step.task is HostTask.FENCE and step.state is StepState.DONE for step in order.host_steps
        )
        vouched = order.action is Action.FAIL and bool(order.terms.fenced)
        written = any(each.kind == Kind.HOST_FENCED and each.order == order.id for each in change.records)
        if vouched and not (known is not None and known.terms.fenced) and not written:
            yield f"nobody knows who vouched for {order.host} in {order.id}"
        before = _begun(known)
        for step in order.steps:
            begins = step.begun_at is not None and (step.machine, step.begun_at) not in before
            if not begins or not step.moves or fenced or vouched:
                continue
            if order.action is Action.FAIL or _is_away(change, step.machine):
                yield f"{step.name} is moved by {order.id}, and its host was not fenced"


def _begun(order: Order | None) -> set[tuple[MachineId, datetime | None]]:
    """Return which machines an order had begun with, and when: one may leave a host and come back."""
    return set() if order is None else {(step.machine, step.begun_at) for step in order.steps}


def _is_away(change: Change, machine: MachineId) -> bool:
    """Return whether the host that carried a machine has failed or is lost."""
    known = change.before.machines.get(machine)
    host = None if known is None or known.host is None else change.after.hosts.get(known.host)
    return host is not None and host.state in (HostState.FAILED, HostState.LOST)


def machines_have_one_step_at_a_time(change: Change) -> Iterator[str]:
    """Rule 5: a stage starts only when its machines have no other step running."""
    busy: dict[MachineId, Order] = {}
    for order in change.after.orders.values():
        for step in order.steps:
            if step.state is not StepState.RUNNING:
                continue
            if step.machine in busy:
                yield f"{step.name} is in the hands of {busy[step.machine].id} and {order.id}"
            busy[step.machine] = order


def incarnations_count_changes(change: Change) -> Iterator[str]:
    """Rule 6: a group's incarnation grows by one when, and only when, its events change."""
    before, after = _seen(change.before), _seen(change.after)
    for name, group in change.after.groups.items():
        known = change.before.groups.get(name)
        if known is None:
            continue
        differs = before.get(name, {}) != after.get(name, {})
        if group.incarnation - known.incarnation != int(differs):
            yield f"{name} went from {known.incarnation} to {group.incarnation}, its events differ: {differs}"


def finished_steps_stay_finished(change: Change) -> Iterator[str]:
    """Rule 8: a step recorded as finished is never run again."""
    for id_, order in change.before.orders.items():
        after = change.after.orders.get(id_)
        if after is None:
            continue
        for index, stage in enumerate(order.stages):
            kept = set(after.stages[index].steps) if index < len(after.stages) else set()
            for step in stage.steps:
                if step.state is StepState.DONE and step not in kept:
                    yield f"{step.name} of {id_} was done and is touched again"


def attempts_are_begun_once(change: Change) -> Iterator[str]:
    """Rule 8: what has ended runs again only as a later attempt, and what runs is not begun anew."""
    for id_, order in change.after.orders.items():
        known = change.before.orders.get(id_)
        before = [step for step in known.steps if step.begun_at is not None] if known else []
        for step in order.steps:
            if step.state is not StepState.RUNNING:
                continue
            for past in (each for each in before if each.machine == step.machine):
                still_runs = past.state is StepState.RUNNING and past.begun_at == step.begun_at
                # One that waits to be tried again has begun as the attempt before.
                last = past.attempt - (past.state is StepState.WAITING)
                if step.attempt <= last and not (still_runs and step.attempt == last):
                    yield f"attempt {step.attempt} of {step.name} in {id_} runs after attempt {last}"


def what_was_announced_stays_announced(change: Change) -> Iterator[str]:
    """Rule 12: a machine that has heard of an order is not worked on without a started event of it."""
    shown = {
        (event.order, named.machine)
        for event in change.after.events.values()
        if event.status is EventStatus.STARTED
        for named in event.resources
    }
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        before = _begun(known)
        for step in order.steps:
            begins = step.state is StepState.RUNNING and (step.machine, step.begun_at) not in before
            heard = (order.id, step.machine)
            if begins and heard in change.announced and heard not in shown:
                yield f"{step.name} was told of {order.id}, which begins with no event"


def windows_are_heeded(change: Change) -> Iterator[str]:
    """Maintenance starts only where its expected end fits into the windows of all it disturbs."""
    for event in change.after.events.values():
        order, known = change.after.orders[event.order], change.before.events.get(event.id)
        if event.status is not EventStatus.STARTED or (known and known.status is EventStatus.STARTED):
            continue
        if order.action not in _PLANNED or order.terms.emergency:
            continue
        past = order.terms.deadline is not None and order.terms.deadline <= change.now
        project = change.after.groups[event.group].project
        calendar = change.after.projects[project].calendar
        work = order.terms.expected or change.policy.expected_work
        if order.stages[event.stage].kind in _MOVING:
            work = MINUTE  # at least; how long a move takes is no rule
        moments = [change.now + index * MINUTE for index in range(work // MINUTE)]
        moments.append(change.now + work - MOMENT)
        if not past and not all(_is_open(calendar, moment) for moment in moments):
            yield f"{event.id} started outside the window of {project}"


def _is_open(calendar: Calendar, moment: datetime) -> bool:
    """Return whether a moment lies in a window, by looking at each one on the wall."""
    local = moment.astimezone(calendar.zone)
    if local.date() in calendar.blackout:
        return False
    for window in calendar.windows:
        for back in range(window.length // DAY + 2):
            day = local.date() - back * DAY
            opens = datetime.combine(day, window.start, tzinfo=calendar.zone).astimezone(UTC)
            if day.weekday() in window.days and opens <= moment < opens + window.length:
                return True
    return not calendar.windows


def budgets_are_heeded(change: Change) -> Iterator[str]:
    """Maintenance is armed only where groups keep as many healthy machines as they need."""
    disturbing = (event for event in change.after.events.values() if event.armed_at is not None)
    named = {named.machine for event in disturbing for named in event.resources}
    for event in _newly_armed(change):
        order, group = change.after.orders[event.order], change.after.groups[event.group]
        mine = order.action in _PLANNED and not order.terms.emergency
        if not mine or not group.policy.budget:
            continue
        members = (machine for machine in change.after.machines.values() if machine.group == group.name)
        well = [each for each in members if each.state is MachineState.RUNNING and each.id not in named]
        if len(well) < group.policy.budget:
            yield f"{event.id} leaves {group.name} {len(well)} healthy, it needs {group.policy.budget}"


def misplaced(fleet: Slice) -> list[str]:
    """Return the machines that are where they cannot be, and the names in events that no machine has."""
    lost = [
        f"{event.id} names {named.name}, who left the fleet"
        for event in fleet.events.values()
        for named in event.resources
        if named.machine not in fleet.machines
    ]
    homeless = [
        f"{machine.name} is {machine.state} on no host"
        for machine in fleet.machines.values()
        if machine.host is None and machine.state is not MachineState.STOPPED
    ]
    # One that is being evicted runs until that is done.
    leaving = {
        step.machine
        for order in fleet.orders.values()
        if ACTIONS[order.action].leaves
        for step in order.steps
        if step.state is StepState.RUNNING
    }
    dead = [
        f"{machine.name} is running on {machine.host}, which failed"
        for machine in fleet.machines.values()
        if machine.state is MachineState.RUNNING and _has_failed(fleet, machine.host)
        if machine.id not in leaving
    ]
    return lost + homeless + dead


def _has_failed(fleet: Slice, host: HostName | None) -> bool:
    return host is not None and fleet.hosts[host].state is HostState.FAILED


def overdue(fleet: Slice, *, now: datetime, policy: Policy) -> list[str]:
    """Rules 4 and 11, after a tick: nothing is still scheduled so late, or not armed so late."""
    scheduled = [event for event in fleet.events.values() if event.status is EventStatus.SCHEDULED]
    late = [
        f"{event.id} is {now - event.not_before} past its NotBefore"
        for event in scheduled
        if now >= event.not_before + policy.stale_after
    ]
    unarmed = [
        f"{event.id} is not armed, {event.not_before - now} before its NotBefore"
        for event in scheduled
        if event.armed_at is None and event.type not in HINTS
        if event.not_before - now <= policy.notice(event.type)
    ]
    return late + unarmed


def unexplained(fleet: Slice) -> list[str]:
    """Rule 10: everything that waits carries its reason."""
    return [
        f"order {order.id} is {order.state} for no reason"
        for order in fleet.orders.values()
        if order.state in ("queued", "announced", "failed") and not order.waiting
    ]


def _by_group(fleet: Slice) -> Mapping[GroupName, list[Event]]:
    found: dict[GroupName, list[Event]] = {}
    for event in fleet.events.values():
        found.setdefault(event.group, []).append(event)
    return found


def _seen(fleet: Slice) -> Mapping[GroupName, Mapping[EventId, object]]:
    """What the guests of each group see that can change."""
    found: dict[GroupName, dict[EventId, object]] = {}
    for event in fleet.events.values():
        seen = (event.status, event.not_before, event.resources)
        found.setdefault(event.group, {})[event.id] = seen
    return found
