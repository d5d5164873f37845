"""The promises as data: the event that each kind of order announces, and its notice.

The defaults are Azure's (its documentation, and published medians). Every one can be set.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from forewarn.core.basic_types import HINTS, SIMULATED, Action, EventType, HostTask, Source, Work
from forewarn.core.catalogue import ACTIONS, WORKS
from forewarn.core.errors import Invalid
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.order import Order

UNKNOWN_DURATION = -1
# Marks fields of the policy that other sections of the settings set.
SET_ELSEWHERE: Mapping[str, bool] = MappingProxyType({"set_elsewhere": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The times and limits of a fleet."""

    #: Minimum notice of a Freeze.
    freeze_notice: timedelta = timedelta(minutes=15)
    #: Minimum notice of a Reboot.
    reboot_notice: timedelta = timedelta(minutes=15)
    #: Minimum notice of a Redeploy.
    redeploy_notice: timedelta = timedelta(minutes=10)
    #: Minimum notice of a Preempt.
    preempt_notice: timedelta = timedelta(seconds=30)
    #: Minimum notice of a Terminate.
    terminate_notice: timedelta = timedelta(minutes=5)
    #: How long a recommendation to rebalance is listed.
    rebalance_recommendation: timedelta = timedelta(minutes=30)
    # Hardware that is predicted to fail still has days; guests can use them to move at leisure.
    #: Notice before machines leave a degraded host.
    degrade_notice: timedelta = timedelta(days=7)
    #: Notice of platform work for groups whose guests never polled, if shorter.
    unheard_notice: timedelta | None = None
    #: Announced interruption by a freeze of a machine.
    freeze_duration: timedelta = timedelta(seconds=5)
    #: Announced interruption by a freeze of a host.
    host_freeze_duration: timedelta = timedelta(seconds=9)
    # A started event stays listed this long, so that slow pollers see it.
    #: Minimum time that a started event stays listed.
    linger: timedelta = timedelta(seconds=90)
    # This long after NotBefore, a guest no longer expects the event: forewarn announces it again.
    #: An event that has not started this long after its NotBefore is withdrawn and announced again.
    stale_after: timedelta = timedelta(minutes=30)
    #: Expected time of maintenance of one stage, which must fit into a window.
    expected_work: timedelta = timedelta(minutes=5)
    #: How long the first poll of a group takes. Azure takes up to two minutes.
    enable_delay: timedelta = timedelta()
    #: Without polls for this long, a group gets no notice of its users' own restarts.
    idle_after: timedelta = timedelta(hours=24)
    #: Interval at which the times of polls are saved.
    save_activity_every: timedelta = timedelta(minutes=10)
    #: If an external driver sends no heartbeat for this long, its work has failed. Real time.
    external_silence: timedelta = timedelta(minutes=10)
    #: Limit of scheduled user orders in a project.
    user_orders: int = 100
    #: If work on a host takes longer, the host is lost.
    return_by: timedelta = timedelta(hours=1)
    #: Retries of a failed move before the machine moves in another way, or its step fails.
    move_retries: int = 1
    # The steps that hooks carry out, and the drivers that fence hosts, work on them, cordon them, or choose
    # where machines go.
    hooks: frozenset[HostTask] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    fencing: frozenset[str] = field(default=frozenset({SIMULATED}), metadata=SET_ELSEWHERE)
    working_on_hosts: frozenset[str] = field(default=frozenset({SIMULATED}), metadata=SET_ELSEWHERE)
    cordoning: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    choosing_hosts: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    # Drivers that check, before a move is announced, whether it is possible.
    prechecking: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    # Drivers that verify, after work on a host, that the machines that stayed on it are running.
    verifying_restarts: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)

    def __post_init__(self) -> None:
        for name in ("stale_after", "save_activity_every", "external_silence", "return_by"):
            if getattr(self, name) <= timedelta():
                raise Invalid(f"{name.replace('_', '-')}: expected a time greater than zero")

    def notice(self, type_: EventType, *asked: timedelta | None) -> timedelta:
        """Return the longest requested notice, but at least the minimum of the type."""
        least: timedelta = getattr(self, _LEAST_NOTICE[type_])
        return max((least, *(each for each in asked if each is not None)))

    def shortened(self, notice: timedelta, *, heard: bool) -> timedelta:
        """Return the notice of platform work for a group; groups that never polled may get less."""
        return notice if heard or self.unheard_notice is None else min(notice, self.unheard_notice)


_LEAST_NOTICE: Mapping[EventType, str] = {
    EventType.FREEZE: "freeze_notice",
    EventType.REBOOT: "reboot_notice",
    EventType.REDEPLOY: "redeploy_notice",
    EventType.PREEMPT: "preempt_notice",
    EventType.TERMINATE: "terminate_notice",
    EventType.SPOT_REBALANCE_RECOMMENDATION: "rebalance_recommendation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The content of an order's event."""

    type: EventType
    source: Source
    ahead: timedelta
    promised: timedelta  # the notice without the emergency
    least: timedelta = timedelta()  # the minimum of its type
    description: str = ""
    duration_seconds: int = UNKNOWN_DURATION


def notice_of(order: Order, work: Work, groups: Iterable[Group], policy: Policy) -> Notice:
    """Return the event that an order announces for some work.

    The event has one NotBefore, so the longest notice of all its groups applies.
    """
    type_ = event_type(work)
    promised = max(_ahead(order, type_, group, policy) for group in groups)
    shortened = order.terms.notice or timedelta()
    return Notice(
        type=type_,
        source=order.source,
        ahead=min(promised, shortened) if order.terms.emergency and not WORKS[work].hint else promised,
        promised=promised,
        least=policy.notice(type_),
        description=_description(order, work),
        duration_seconds=_duration(order, work, policy),
    )


def _description(order: Order, work: Work) -> str:
    """Return the text for guests; a live move has the text of a live migration."""
    live = order.action is Action.MOVE and work is Work.FREEZE
    return ACTIONS[Action.FREEZE if live else order.action].description


def _ahead(order: Order, type_: EventType, group: Group, policy: Policy) -> timedelta:
    """Return the notice for one group."""
    asked = _asked(order, type_, group.policy, policy)
    platform = order.source is Source.PLATFORM and type_ not in HINTS
    return policy.shortened(asked, heard=group.heard) if platform else asked


def _asked(order: Order, type_: EventType, asked: GroupPolicy, policy: Policy) -> timedelta:
    match order.action:
        case Action.FAIL:
            return timedelta()
        case Action.DEGRADE:
            return policy.notice(type_, asked.degrade_notice or policy.degrade_notice)
        case Action.TERMINATE:
            return policy.notice(type_, asked.terminate_notice)
        case Action.EVICT | Action.RECOMMEND_REBALANCE:
            return policy.notice(type_)
        case _:
            return policy.notice(type_, asked.notice)


def is_planned(order: Order) -> bool:
    """Whether windows and budgets apply to an order: to maintenance and service without an emergency."""
    return order.action in (Action.MAINTENANCE, Action.SERVICE) and not order.terms.emergency


def degrade_announced_at(order: Order, groups: Iterable[Group], policy: Policy) -> datetime:
    """Return when to announce a degraded host: as early as guests ask, in an emergency at once."""
    if order.terms.emergency:
        return order.created_at
    asked = replace(policy, unheard_notice=None)  # a shorter notice means earlier work, not a later event
    return order.created_at + policy.degrade_notice - notice_of(order, work_of(order), groups, asked).ahead


def event_type(work: Work) -> EventType:
    """Return the event type of work; ValueError if the work is never announced."""
    type_ = WORKS[work].event
    if type_ is None:
        raise ValueError(f"a {work} is never announced")
    return type_


def work_of(order: Order) -> Work:
    """Return an order's work on machines; ValueError if it has none."""
    if order.work is None:
        raise ValueError(f"a {order.action} order does nothing to machines")
    return order.work


def _duration(order: Order, work: Work, policy: Policy) -> int:
    match order.action, work:
        case Action.FREEZE | Action.MOVE, Work.FREEZE:
            return int(policy.freeze_duration.total_seconds())
        case Action.MAINTENANCE | Action.SERVICE, Work.FREEZE:
            return int(policy.host_freeze_duration.total_seconds())
        case _:
            return UNKNOWN_DURATION
