"""What each kind of order announces to guests, and how long before: the promises as data.

The defaults are Azure's (its documentation, and published medians); every one can be set.
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
# Marks what is part of the policy and not of its section in the settings.
SET_ELSEWHERE: Mapping[str, bool] = MappingProxyType({"set_elsewhere": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The times and limits that hold for a fleet."""

    freeze_notice: timedelta = timedelta(minutes=15)
    reboot_notice: timedelta = timedelta(minutes=15)
    redeploy_notice: timedelta = timedelta(minutes=10)
    preempt_notice: timedelta = timedelta(seconds=30)
    terminate_notice: timedelta = timedelta(minutes=5)
    # How long a recommendation is listed: nothing comes of it, then or later.
    rebalance_recommendation: timedelta = timedelta(minutes=30)
    # Hardware that is predicted to fail still has days; guests may use them to move at leisure.
    degrade_notice: timedelta = timedelta(days=7)
    # Of platform work, for groups of which no guest has ever polled; None: as for all others.
    unheard_notice: timedelta | None = None
    freeze_duration: timedelta = timedelta(seconds=5)
    host_freeze_duration: timedelta = timedelta(seconds=9)
    # A started event stays listed so long, so that slow pollers see it.
    linger: timedelta = timedelta(seconds=90)
    # Past NotBefore by this much, a guest no longer expects the event: it is announced anew.
    stale_after: timedelta = timedelta(minutes=30)
    # How long maintenance of a stage is expected to take: so much must fit into a window.
    expected_work: timedelta = timedelta(minutes=5)
    enable_delay: timedelta = timedelta()
    idle_after: timedelta = timedelta(hours=24)
    save_activity_every: timedelta = timedelta(minutes=10)
    # An external driver that is silent for so long is taken to have failed.
    external_silence: timedelta = timedelta(minutes=10)
    user_orders: int = 100
    # A host that is worked on for longer is taken to be lost.
    return_by: timedelta = timedelta(hours=1)
    # A machine that leaves its host is moved so often again before it goes in another way, or has failed.
    move_retries: int = 1
    # Who does what to hosts is no time, and set elsewhere: the tasks that there are hooks for, and the
    # drivers that fence hosts, work on them and cordon them by themselves, or choose where machines go.
    hooks: frozenset[HostTask] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    fencing: frozenset[str] = field(default=frozenset({SIMULATED}), metadata=SET_ELSEWHERE)
    working_on_hosts: frozenset[str] = field(default=frozenset({SIMULATED}), metadata=SET_ELSEWHERE)
    cordoning: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    choosing_hosts: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    # Drivers that say, before a move is announced, whether it can be.
    prechecking: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)
    # Drivers that verify, after work on a host, that the machines that stayed on it run.
    verifying_restarts: frozenset[str] = field(default=frozenset(), metadata=SET_ELSEWHERE)

    def __post_init__(self) -> None:
        for name in ("stale_after", "save_activity_every", "external_silence", "return_by"):
            if getattr(self, name) <= timedelta():
                raise Invalid(f"{name.replace('_', '-')}: expected more than no time")

    def notice(self, type_: EventType, *asked: timedelta | None) -> timedelta:
        """Return the notice of an event: the most asked for, never less than its type's minimum."""
        return max((self._least(type_), *(each for each in asked if each is not None)))

    def shortened(self, notice: timedelta, *, heard: bool) -> timedelta:
        """Return the notice of platform work for a group, which is less if nobody there ever listened."""
        return notice if heard or self.unheard_notice is None else min(notice, self.unheard_notice)

    def _least(self, type_: EventType) -> timedelta:
        match type_:
            case EventType.FREEZE:
                return self.freeze_notice
            case EventType.REBOOT:
                return self.reboot_notice
            case EventType.REDEPLOY:
                return self.redeploy_notice
            case EventType.PREEMPT:
                return self.preempt_notice
            case EventType.TERMINATE:
                return self.terminate_notice
            case EventType.SPOT_REBALANCE_RECOMMENDATION:
                return self.rebalance_recommendation


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What an order announces to guests."""

    type: EventType
    source: Source
    ahead: timedelta
    promised: timedelta  # what it would be but for an emergency
    least: timedelta = timedelta()  # the minimum of its type
    description: str = ""
    duration_seconds: int = UNKNOWN_DURATION


def notice_of(order: Order, work: Work, groups: Iterable[Group], policy: Policy) -> Notice:
    """Return what an order announces to the guests of machines that it does some work to.

    They get one NotBefore, so the group that asks for most notice decides for all.
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
    """Return what guests read; a live move reads as the live migration that it is."""
    live = order.action is Action.MOVE and work is Work.FREEZE
    return ACTIONS[Action.FREEZE if live else order.action].description


def _ahead(order: Order, type_: EventType, group: Group, policy: Policy) -> timedelta:
    """Return the notice that one group is given."""
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
    """Whether an order heeds windows and budgets: maintenance and service do, an emergency does not."""
    return order.action in (Action.MAINTENANCE, Action.SERVICE) and not order.terms.emergency


def degrade_announced_at(order: Order, groups: Iterable[Group], policy: Policy) -> datetime:
    """Return when a degraded host is announced: as far ahead as guests ask, in an emergency at once."""
    if order.terms.emergency:
        return order.created_at
    asked = replace(policy, unheard_notice=None)  # who never listens is not told later, but sooner disturbed
    return order.created_at + policy.degrade_notice - notice_of(order, work_of(order), groups, asked).ahead


def event_type(work: Work) -> EventType:
    """Return as what work is announced; only for work that is."""
    type_ = WORKS[work].event
    if type_ is None:
        raise ValueError(f"a {work} is never announced")
    return type_


def work_of(order: Order) -> Work:
    """Return what an order does to machines; only for orders that do something to them."""
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
