"""Carrying rollouts on: load, let core decide, place or cancel orders, save; each in one transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from forewarn.control.rollouts.rollout_cache import NoticeSums, RolloutCache
from forewarn.control.unsaved_activity import UnsavedPolls
from forewarn.control.use_case import Context, UseCase
from forewarn.core.basic_types import FOREWARN, HostName, Kind, OrderId
from forewarn.core.draft import Draft
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.order import Order, OrderTerms, Step
from forewarn.core.model.rollout import Rollout, RolloutState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.orders import interventions, lifecycle, requests, winding_down
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.policy import Policy
from forewarn.core.rollouts import (
    emptying,
    forecast,
    interchangeable_hosts,
    machine_health,
    planning,
    progress,
)
from forewarn.core.rollouts.progress import Orders, UnwellMachines
from forewarn.store.batch import Transaction
from forewarn.store.queries.rollouts import RolloutQueries

Item = TypeVar("Item")

# Loaded and saved together: a wave of the usual size is one draft; before a large one goes on, others get
# their turn.
TOGETHER = 20
# The same while callers are about, who get their turn between two of these.
FEW = 8


class _LastWave(NamedTuple):
    """A rollout that is settled by what has become of its last wave."""

    rollout: Rollout
    orders: Orders
    quiet: UnwellMachines  # the machines that are not well yet


class RolloutEngine(UseCase):
    """Carries rollouts as far as they can go."""

    def __init__(self, context: Context, *, polls: UnsavedPolls) -> None:
        super().__init__(context)
        self._polls = polls
        self.cache = RolloutCache()
        self._sums = NoticeSums()

    def look(self, tx: Transaction, id_: str, now: datetime, *, few: bool = False) -> None:
        """Carry a rollout on by a piece, a smaller one if others may come in between; it may stay due."""
        known = tx.rollouts.find(id_)
        if known is None or not known.open:
            return
        if known.coming:
            self._go_on(tx, known, now, most=FEW if few else TOGETHER)
            return
        wave = self._wave(tx, known, now)
        if not self._sums.add(tx, wave.rollout):
            self._act(tx, wave, now)

    def carry_on(
        self, tx: Transaction, mine: Rollout, now: datetime, *, survey: HostSurvey | None = None
    ) -> Rollout:
        """Announce the next wave, or more of it, if its time has come; pause if something went wrong.

        `survey` is of the hosts that are left, if it was loaded in the same transaction.
        """
        if mine.coming:
            return self._go_on(tx, mine, now)
        return self._act(tx, self._wave(tx, mine, now), now, survey=survey)

    def _wave(self, tx: Transaction, mine: Rollout, now: datetime) -> _LastWave:
        """Load what has become of the wave that began last, and settle it."""
        orders_ = self.orders_of(tx, mine)
        quiet = self.quiet(tx, mine, orders_, now)
        return _LastWave(progress.settle(mine, orders_, quiet, now=now), orders_, quiet)

    def _act(
        self, tx: Transaction, wave: _LastWave, now: datetime, *, survey: HostSurvey | None = None
    ) -> Rollout:
        mine, orders_, quiet = wave
        if not mine.open:
            return self._over(tx, mine, now)
        if failed := progress.orders_to_abandon(mine, orders_):
            return self._leave_out(tx, mine, failed, now)
        wrong = _what_is_wrong(mine, orders_, quiet, now, self._policy)
        if wrong:
            return self.pause(tx, mine, by="", why=wrong, now=now)
        if quiet or not planning.is_ready(mine, now=now):
            return self.save(tx, planning.rest(mine, orders_, quiet, now=now, policy=self._policy), now)
        if survey is None:
            survey = self._survey(tx, mine, mine.left)
        mine, chosen = planning.next_wave(mine, survey, now=now, policy=self._policy)
        if not chosen and mine.blocked:
            no_way = planning.why_stuck(mine, survey, now=now, policy=self._policy)
            return self.pause(tx, mine, by="", why=no_way, now=now) if no_way else self.save(tx, mine, now)
        if chosen:
            ends = forecast.ends_about(mine, chosen, survey, now=now, policy=self._policy)
            # No machine may move onto a host of its own wave: then all have their orders before any starts.
            first = chosen if emptying.moves_machines(mine) or len(chosen) <= TOGETHER else chosen[:FEW]
            placed = self._place(tx, mine, first, now)
            mine = planning.begin(mine, _ids(placed), survey, now=now, ends_about=ends)
            mine = _with_drivers(mine, placed)
            mine = forecast.arrange_by_windows(mine, survey, now=now, policy=self._policy)
        # Empty hosts are done at once. What comes then, and the rest of a large wave, is for the next tick:
        # others get their turn before.
        return self.save(tx, replace(mine, due_at=now), now)

    def _leave_out(self, tx: Transaction, mine: Rollout, failed: Sequence[Order], now: datetime) -> Rollout:
        """Give up hosts that failed, as many as the rollout may; it goes on without them."""
        for some in _chunks(failed):
            with self._saving(tx, tx.rules.around(orders=[order.id for order in some]), now=now) as draft:
                for order in some:
                    interventions.abandon(draft, order.id, by=FOREWARN)
        hosts = (order.host for order in failed if order.host is not None)
        return self.save(tx, replace(progress.without(mine, hosts), due_at=now), now)

    def _go_on(self, tx: Transaction, mine: Rollout, now: datetime, *, most: int = TOGETHER) -> Rollout:
        """Place the next orders of a large wave, unless one of the first has gone wrong."""
        wrong = progress.trouble(mine, self.orders_of(tx, mine))
        if wrong:
            return self.pause(tx, mine, by="", why=f"{wrong[0]}", now=now)
        # No machine may move onto a host of its own wave: then all have their orders before any starts.
        some = mine.coming if emptying.moves_machines(mine) else mine.coming[:most]
        survey = self._survey(tx, mine, some)
        free = planning.still_announceable(mine, some, survey, now=now, policy=self._policy)
        placed = self._place(tx, mine, free, now)
        mine = _with_drivers(planning.go_on(mine, some, _ids(placed), now=now), placed)
        return self.save(tx, replace(mine, due_at=now), now)

    def _survey(self, tx: Transaction, mine: Rollout, hosts: Sequence[HostName]) -> HostSurvey:
        return disturbed(self.cache.survey(tx, hosts), mine)

    def orders_of(self, tx: Transaction, mine: Rollout) -> Orders:
        """Return the orders of the wave that began last; those of earlier ones are settled."""
        return self.cache.of_last_wave(tx, mine)

    def quiet(self, tx: Transaction, mine: Rollout, orders_: Orders, now: datetime) -> UnwellMachines:
        """Find the machines that are not well yet: they do not poll again, or are off."""
        return (*self._silent(tx, mine, orders_), *self._off(tx, mine, orders_, now))

    def _off(self, tx: Transaction, mine: Rollout, orders_: Orders, now: datetime) -> UnwellMachines:
        """Find the machines that are off after their work, also of waves that have just ended."""
        known = self.cache.stopped(tx, mine)
        if known is not None and not known:
            return ()
        every = (order for wave in machine_health.recent(mine, now=now) for order in wave.orders)
        unknown = [order for order in every if order not in orders_]
        earlier = tx.rollouts.orders_by_id(unknown) if unknown else {}
        steps = machine_health.treated(mine, (*orders_.values(), *earlier.values()))
        stopped = tx.fleet.stopped([step.machine for step in steps]) if steps else frozenset()
        self.cache.keep_stopped(tx, mine, stopped)
        mine_off = [step for step in steps if step.machine in stopped]
        by_others = {step.machine for step in mine_off if self._is_stopped_by_others(tx, step)}
        return machine_health.off(mine_off, by_others)

    def _is_stopped_by_others(self, tx: Transaction, step: Step) -> bool:
        """Return whether an import has found a machine stopped; forewarn stops those that are evicted."""
        kinds = frozenset({Kind.MACHINE_CHANGED.value, Kind.STEP_DONE.value})
        since = HistoryFilter(machine=step.name, group=step.group, since=step.ended_at, kinds=kinds)
        return machine_health.is_stopped_by_others(tx.records.history(since))

    def _silent(self, tx: Transaction, mine: Rollout, orders_: Orders) -> UnwellMachines:
        """Find the machines of the last wave that must poll again and have not."""
        if not mine.terms.require_poll:
            return ()
        worked_on = [step.machine for order in orders_.values() for step in order.steps]
        seen = {**tx.fleet.last_seen(worked_on), **self._polls.fresh()(worked_on)}
        return machine_health.silent(mine, orders_.values(), seen)

    def pause(self, tx: Transaction, mine: Rollout, *, by: str, why: str, now: datetime) -> Rollout:
        """Cancel what has not begun, withdraw what else is announced, and wait for a person."""
        self.cancel_unbegun(tx, mine, by=by, why=f"rollout {mine.id} is paused: {why}", now=now)
        self._in_drafts(tx, mine, lambda draft, order: lifecycle.pause(draft, order, why=why), now)
        mine = progress.paused(mine, self.orders_of(tx, mine), why=why, now=now)
        mine = progress.with_change(mine, "paused", by=by, now=now)
        return self.save(tx, mine, now, kind=Kind.ROLLOUT_PAUSED, by=by, why=why)

    def wind_down(self, tx: Transaction, mine: Rollout, *, by: str, why: str, now: datetime) -> None:
        """Call off what has not started of the hosts that have begun."""

        def wind_down(draft: Draft, order: OrderId) -> object:
            winding_down.begin(draft, order, by=by, why=why)
            return lifecycle.advance(draft, order, policy=self._policy)

        self._in_drafts(tx, mine, wind_down, now)

    def resume(self, tx: Transaction, mine: Rollout, now: datetime) -> None:
        """Let the hosts go on that a pause kept from their next stage."""
        self._in_drafts(tx, mine, lifecycle.resume, now)

    def _in_drafts(
        self,
        tx: Transaction,
        mine: Rollout,
        change: Callable[[Draft, OrderId], object],
        now: datetime,
        *,
        begun: bool = True,
    ) -> None:
        """Change all open orders of the last wave that have begun, or have not."""
        loaded = self.orders_of(tx, mine).values()
        kept = (order for order in loaded if order.open and not order.terms.abandoned_by)
        open_ones = [order.id for order in kept if progress.has_begun(order) is begun]
        for some in _chunks(open_ones):
            with self._saving(tx, tx.rules.around(orders=some), now=now) as draft:
                for order in some:
                    change(draft, order)

    def cancel_unbegun(self, tx: Transaction, mine: Rollout, *, by: str, why: str, now: datetime) -> None:
        """Cancel the orders of a rollout that have done nothing yet."""

        def cancel(draft: Draft, order: OrderId) -> object:
            return interventions.cancel(draft, order, by=by, why=why)

        self._in_drafts(tx, mine, cancel, now, begun=False)

    def save(
        self,
        tx: Transaction,
        mine: Rollout,
        now: datetime,
        *,
        kind: Kind | None = None,
        by: str = "",
        why: str = "",
    ) -> Rollout:
        """Save a rollout, with a record if something happened to it."""
        mine = self._sums.complete(tx, mine)
        with self._saving(tx, now=now, rollout=mine) as draft:
            if kind is not None:
                reason = f"rollout {mine.id}: {why}" if why else f"rollout {mine.id}"
                draft.record(kind, None, by=by, reason=reason)
        return replace(mine, number=draft.given(mine.number))

    def _over(self, tx: Transaction, mine: Rollout, now: datetime) -> Rollout:
        # An abort was recorded when it was asked for.
        done = mine.state is RolloutState.DONE
        return self.save(tx, mine, now, kind=Kind.ROLLOUT_DONE if done else None, by=mine.by if done else "")

    def _place(
        self, tx: Transaction, mine: Rollout, hosts: Sequence[HostName], now: datetime
    ) -> dict[HostName, Order]:
        asked = mine.terms
        terms = OrderTerms(
            rollout=mine.id,
            heartbeat=asked.heartbeat,
            expected=asked.expected,
            deadline=asked.deadline,
            whole=asked.whole,
            together=asked.together,
            mode=asked.mode,
            returning=asked.returning,
            host_driver=asked.host_driver,
        )
        request = OrderRequest(by=mine.by, reason=mine.reason, driver=asked.driver, terms=terms)
        homes = interchangeable_hosts.homes(mine, hosts)
        placed: dict[HostName, Order] = {}
        for some in _chunks(hosts):
            near = sorted({home for host in some for home in homes.get(host, ())})
            around = tx.rules.around(hosts=some, room=emptying.moves_machines(mine), homes=near)
            with self._saving(tx, around, now=now) as draft:
                placed |= {
                    host: self._order(draft, host, mine, request, homes.get(host, ())) for host in some
                }
        return placed

    def _order(
        self, draft: Draft, host: HostName, mine: Rollout, request: OrderRequest, homes: tuple[HostName, ...]
    ) -> Order:
        request = replace(request, terms=replace(request.terms, homes=homes))
        return requests.on_host(draft, host, mine.ordered, request, work=mine.work, policy=self._policy)


def surveyed(rollouts: RolloutQueries, mine: Rollout, hosts: Sequence[HostName]) -> HostSurvey:
    """Load what decides about hosts, as a rollout disturbs them."""
    return disturbed(rollouts.survey(hosts), mine)


def disturbed(survey: HostSurvey, mine: Rollout) -> HostSurvey:
    """Return hosts as a rollout disturbs them: those that leave one do so as ever."""
    survey = survey.disturbed_by(mine.work)
    return survey.all_domains_at_once() if mine.terms.together and not mine.empties else survey


def with_alike(rollouts: RolloutQueries, mine: Rollout, survey: HostSurvey) -> Rollout:
    """Note which hosts are alike, where machines leave theirs: for these, and for the waves."""
    if not emptying.moves_machines(mine):
        return mine
    groups = {group for footprint in survey.footprints.values() for group in footprint.counts}
    listed = groups & survey.sizes.keys()
    others = rollouts.other_hosts_with(sorted(listed), besides=survey.hosts)
    return replace(mine, alike=interchangeable_hosts.find(survey, others))


def _what_is_wrong(mine: Rollout, orders_: Orders, quiet: UnwellMachines, now: datetime, policy: Policy) -> str:
    """Return what must pause a rollout: a failed step, a dead end, a machine that is not healthy in time."""
    if mine.state is not RolloutState.RUNNING or mine.aborting:
        return ""
    found = (
        *progress.trouble(mine, orders_),
        *progress.stuck(mine, orders_),
        *machine_health.unwell(mine, orders_.values(), quiet, now=now, policy=policy).values(),
    )
    return f"{found[0]}" if found else ""


def _ids(placed: Mapping[HostName, Order]) -> dict[HostName, OrderId]:
    return {host: order.id for host, order in placed.items()}


def _with_drivers(mine: Rollout, placed: Mapping[HostName, Order]) -> Rollout:
    """Note who does the work on hosts that have orders now."""
    drivers = {host: order.driver for host, order in placed.items()}
    return replace(mine, drivers={**mine.drivers, **drivers})


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), TOGETHER):
        yield items[start : start + TOGETHER]
