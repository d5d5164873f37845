"""Advancing rollouts: load, let core decide, place or cancel orders, save; each in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from forewarn.control.paging import chunks
from forewarn.control.rollouts.rollout_cache import NoticeSums, RolloutCache
from forewarn.control.unsaved_activity import UnsavedPolls
from forewarn.control.use_case import Context, UseCase
from forewarn.core.basic_types import FOREWARN, HostName, Kind, OrderId
from forewarn.core.draft import Draft
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.order import Order, OrderTerms, Step
from forewarn.core.model.rollout import Rollout, RolloutState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.orders import interventions, lifecycle, order_requests, winding_down
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.policy import Policy
from forewarn.core.rollouts import (
    evacuation,
    forecast,
    interchangeable_hosts,
    machine_health,
    planning,
    progress,
)
from forewarn.core.rollouts.progress import Orders, UnwellMachines
from forewarn.store.batch import Transaction
from forewarn.store.queries.rollouts import RolloutQueries

# Orders per draft: the size of a usual wave. Other callers get their turn between two pieces of a larger one.
TOGETHER = 20
# The same while callers wait.
FEW = 8


class _LastWave(NamedTuple):
    """A rollout and its last wave, after settling."""

    rollout: Rollout
    orders: Orders
    quiet: UnwellMachines  # the machines that are not well yet


class RolloutEngine(UseCase):
    """Advances rollouts as far as possible."""

    def __init__(self, context: Context, *, polls: UnsavedPolls) -> None:
        super().__init__(context)
        self._polls = polls
        self.cache = RolloutCache()
        self._sums = NoticeSums()

    def look(self, tx: Transaction, id_: str, now: datetime, *, few: bool = False) -> None:
        """Advance a rollout by one piece, a smaller one with `few`. It may stay due."""
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
        self, tx: Transaction, rollout: Rollout, now: datetime, *, survey: HostSurvey | None = None
    ) -> Rollout:
        """Announce the next wave, or more of it, if it is time; pause if something went wrong.

        `survey`: of the remaining hosts, if it was loaded in the same transaction.
        """
        if rollout.coming:
            return self._go_on(tx, rollout, now)
        return self._act(tx, self._wave(tx, rollout, now), now, survey=survey)

    def _wave(self, tx: Transaction, rollout: Rollout, now: datetime) -> _LastWave:
        """Load the state of the last wave, and settle it."""
        orders = self.orders_of(tx, rollout)
        quiet = self.quiet(tx, rollout, orders, now)
        return _LastWave(progress.settle(rollout, orders, quiet, now=now), orders, quiet)

    def _act(
        self, tx: Transaction, wave: _LastWave, now: datetime, *, survey: HostSurvey | None = None
    ) -> Rollout:
        rollout, orders, quiet = wave
        if not rollout.open:
            done = rollout.state is RolloutState.DONE  # an abort was recorded when it was requested
            kind, by = (Kind.ROLLOUT_DONE, rollout.by) if done else (None, "")
            return self.save(tx, rollout, now, kind=kind, by=by)
        if failed := progress.orders_to_abandon(rollout, orders):
            return self._leave_out(tx, rollout, failed, now)
        wrong = _what_is_wrong(rollout, orders, quiet, now, self._policy)
        if wrong:
            return self.pause(tx, rollout, by="", why=wrong, now=now)
        if quiet or not planning.is_ready(rollout, now=now):
            return self.save(
                tx, planning.with_due_time(rollout, orders, quiet, now=now, policy=self._policy), now
            )
        if survey is None:
            survey = self._survey(tx, rollout, rollout.left)
        rollout, chosen = planning.next_wave(rollout, survey, now=now, policy=self._policy)
        if not chosen and rollout.blocked:
            no_way = planning.why_stuck(rollout, survey, now=now, policy=self._policy)
            return (
                self.pause(tx, rollout, by="", why=no_way, now=now) if no_way else self.save(tx, rollout, now)
            )
        if chosen:
            ends = forecast.ends_about(rollout, chosen, survey, now=now, policy=self._policy)
            # No machine may move to a host of its own wave: all hosts need orders before the first starts.
            first = chosen if evacuation.moves_machines(rollout) or len(chosen) <= TOGETHER else chosen[:FEW]
            placed = self._place(tx, rollout, first, now)
            rollout = planning.begin(rollout, _ids(placed), survey, now=now, ends_about=ends)
            rollout = _with_drivers(rollout, placed)
            rollout = forecast.arrange_by_windows(rollout, survey, now=now, policy=self._policy)
        # The next tick places the rest of a large wave, and continues if all hosts were empty.
        return self.save(tx, replace(rollout, due_at=now), now)

    def _leave_out(
        self, tx: Transaction, rollout: Rollout, failed: Sequence[Order], now: datetime
    ) -> Rollout:
        """Give up failed hosts, as many as the rollout may lose, and continue without them."""
        for some in chunks(failed, TOGETHER):
            with self._saving(tx, tx.rules.around(orders=[order.id for order in some]), now=now) as draft:
                for order in some:
                    interventions.abandon(draft, order.id, by=FOREWARN)
        hosts = (order.host for order in failed if order.host is not None)
        return self.save(tx, replace(progress.without(rollout, hosts), due_at=now), now)

    def _go_on(self, tx: Transaction, rollout: Rollout, now: datetime, *, most: int = TOGETHER) -> Rollout:
        """Place the next orders of a large wave, unless an earlier one has gone wrong."""
        wrong = progress.trouble(rollout, self.orders_of(tx, rollout))
        if wrong:
            return self.pause(tx, rollout, by="", why=f"{wrong[0]}", now=now)
        # As in `_act`: if machines move, all hosts need orders before the first one starts.
        some = rollout.coming if evacuation.moves_machines(rollout) else rollout.coming[:most]
        survey = self._survey(tx, rollout, some)
        free = planning.still_announceable(rollout, some, survey, now=now, policy=self._policy)
        placed = self._place(tx, rollout, free, now)
        rollout = _with_drivers(planning.add_orders(rollout, some, _ids(placed), now=now), placed)
        return self.save(tx, replace(rollout, due_at=now), now)

    def _survey(self, tx: Transaction, rollout: Rollout, hosts: Sequence[HostName]) -> HostSurvey:
        return disturbed(self.cache.survey(tx, hosts), rollout)

    def orders_of(self, tx: Transaction, rollout: Rollout) -> Orders:
        """Return the orders of the last wave. Earlier ones are settled."""
        return self.cache.of_last_wave(tx, rollout)

    def quiet(self, tx: Transaction, rollout: Rollout, orders: Orders, now: datetime) -> UnwellMachines:
        """Find the machines that are not well: they do not poll, or are off."""
        return (*self._silent(tx, rollout, orders), *self._off(tx, rollout, orders, now))

    def _off(self, tx: Transaction, rollout: Rollout, orders: Orders, now: datetime) -> UnwellMachines:
        """Find the machines that are off after their work, including those of waves that have just ended."""
        known = self.cache.stopped(tx, rollout)
        if known is not None and not known:
            return ()
        every = (order for wave in machine_health.watched_waves(rollout, now=now) for order in wave.orders)
        unknown = [order for order in every if order not in orders]
        earlier = tx.rollouts.orders_by_id(unknown) if unknown else {}
        steps = machine_health.finished_steps(rollout, (*orders.values(), *earlier.values()))
        stopped = tx.fleet.stopped([step.machine for step in steps]) if steps else frozenset()
        self.cache.keep_stopped(tx, rollout, stopped)
        its_off = [step for step in steps if step.machine in stopped]
        by_others = {step.machine for step in its_off if self._is_stopped_by_others(tx, step)}
        return machine_health.stopped_outside(its_off, by_others)

    def _is_stopped_by_others(self, tx: Transaction, step: Step) -> bool:
        """Return whether an import has found a machine stopped. forewarn itself stops evicted ones."""
        kinds = frozenset({Kind.MACHINE_CHANGED.value, Kind.STEP_DONE.value})
        since = HistoryFilter(machine=step.name, group=step.group, since=step.ended_at, kinds=kinds)
        return machine_health.is_stopped_by_others(tx.records.history(since))

    def _silent(self, tx: Transaction, rollout: Rollout, orders: Orders) -> UnwellMachines:
        """Find the machines of the last wave that must poll again and have not."""
        if not rollout.terms.require_poll:
            return ()
        worked_on = [step.machine for order in orders.values() for step in order.steps]
        seen = {**tx.fleet.last_seen(worked_on), **self._polls.fresh()(worked_on)}
        return machine_health.not_polling(rollout, orders.values(), seen)

    def pause(self, tx: Transaction, rollout: Rollout, *, by: str, why: str, now: datetime) -> Rollout:
        """Cancel orders that have not begun, withdraw other announcements, and wait for a person."""
        self.cancel_unbegun(tx, rollout, by=by, why=f"rollout {rollout.id} is paused: {why}", now=now)
        self._in_drafts(tx, rollout, lambda draft, order: lifecycle.pause(draft, order, why=why), now)
        rollout = progress.paused(rollout, self.orders_of(tx, rollout), why=why, now=now)
        rollout = progress.with_change(rollout, "paused", by=by, now=now)
        return self.save(tx, rollout, now, kind=Kind.ROLLOUT_PAUSED, by=by, why=why)

    def wind_down(self, tx: Transaction, rollout: Rollout, *, by: str, why: str, now: datetime) -> None:
        """Cancel what has not started on the hosts that have begun."""

        def wind_down(draft: Draft, order: OrderId) -> object:
            winding_down.begin(draft, order, by=by, why=why)
            return lifecycle.advance(draft, order, policy=self._policy)

        self._in_drafts(tx, rollout, wind_down, now)

    def resume(self, tx: Transaction, rollout: Rollout, now: datetime) -> None:
        """Continue on the hosts that the pause has stopped between two stages."""
        self._in_drafts(tx, rollout, lifecycle.resume, now)

    def _in_drafts(
        self,
        tx: Transaction,
        rollout: Rollout,
        change: Callable[[Draft, OrderId], object],
        now: datetime,
        *,
        begun: bool = True,
    ) -> None:
        """Change all open orders of the last wave that have begun, or those that have not."""
        loaded = self.orders_of(tx, rollout).values()
        kept = (order for order in loaded if order.open and not order.terms.abandoned_by)
        open_ones = [order.id for order in kept if progress.has_begun(order) is begun]
        for some in chunks(open_ones, TOGETHER):
            with self._saving(tx, tx.rules.around(orders=some), now=now) as draft:
                for order in some:
                    change(draft, order)

    def cancel_unbegun(self, tx: Transaction, rollout: Rollout, *, by: str, why: str, now: datetime) -> None:
        """Cancel the orders of a rollout that have done nothing yet."""

        def cancel(draft: Draft, order: OrderId) -> object:
            return interventions.cancel(draft, order, by=by, why=why)

        self._in_drafts(tx, rollout, cancel, now, begun=False)

    def save(
        self,
        tx: Transaction,
        rollout: Rollout,
        now: datetime,
        *,
        kind: Kind | None = None,
        by: str = "",
        why: str = "",
    ) -> Rollout:
        """Save a rollout, with a record if `kind` is given."""
        rollout = self._sums.complete(tx, rollout)
        with self._saving(tx, now=now, rollout=rollout) as draft:
            if kind is not None:
                reason = f"rollout {rollout.id}: {why}" if why else f"rollout {rollout.id}"
                draft.record(kind, None, by=by, reason=reason)
        return replace(rollout, number=draft.given(rollout.number))

    def _place(
        self, tx: Transaction, rollout: Rollout, hosts: Sequence[HostName], now: datetime
    ) -> dict[HostName, Order]:
        asked = rollout.terms
        terms = OrderTerms(
            rollout=rollout.id,
            heartbeat=asked.heartbeat,
            expected=asked.expected,
            deadline=asked.deadline,
            whole=asked.whole,
            together=asked.together,
            mode=asked.mode,
            returning=asked.returning,
            host_driver=asked.host_driver,
        )
        request = OrderRequest(by=rollout.by, reason=rollout.reason, driver=asked.driver, terms=terms)
        homes = interchangeable_hosts.homes(rollout, hosts)
        placed: dict[HostName, Order] = {}
        for some in chunks(hosts, TOGETHER):
            near = sorted({home for host in some for home in homes.get(host, ())})
            around = tx.rules.around(hosts=some, room=evacuation.moves_machines(rollout), homes=near)
            with self._saving(tx, around, now=now) as draft:
                for host in some:
                    own = replace(request, terms=replace(terms, homes=homes.get(host, ())))
                    placed[host] = order_requests.on_host(
                        draft, host, rollout.ordered, own, work=rollout.work, policy=self._policy
                    )
        return placed


def surveyed(rollouts: RolloutQueries, rollout: Rollout, hosts: Sequence[HostName]) -> HostSurvey:
    """Load the input of decisions about hosts, for the work of a rollout."""
    return disturbed(rollouts.survey(hosts), rollout)


def disturbed(survey: HostSurvey, rollout: Rollout) -> HostSurvey:
    """Adapt a survey to the work of a rollout. Hosts that are emptied are disturbed as usual."""
    survey = survey.disturbed_by(rollout.work)
    return survey.all_domains_at_once() if rollout.terms.together and not rollout.empties else survey


def with_alike(rollouts: RolloutQueries, rollout: Rollout, survey: HostSurvey) -> Rollout:
    """Note which hosts are interchangeable, if machines leave their hosts."""
    if not evacuation.moves_machines(rollout):
        return rollout
    groups = {group for footprint in survey.footprints.values() for group in footprint.counts}
    listed = groups & survey.sizes.keys()
    others = rollouts.other_hosts_with(sorted(listed), besides=survey.hosts)
    return replace(rollout, alike=interchangeable_hosts.find(survey, others))


def _what_is_wrong(
    rollout: Rollout, orders: Orders, quiet: UnwellMachines, now: datetime, policy: Policy
) -> str:
    """Return why a rollout must pause: a failed step, a dead end, or a machine that stays unwell."""
    if rollout.state is not RolloutState.RUNNING or rollout.aborting:
        return ""
    found = (
        *progress.trouble(rollout, orders),
        *progress.stuck(rollout, orders),
        *machine_health.unwell(rollout, orders.values(), quiet, now=now, policy=policy).values(),
    )
    return f"{found[0]}" if found else ""


def _ids(placed: Mapping[HostName, Order]) -> dict[HostName, OrderId]:
    return {host: order.id for host, order in placed.items()}


def _with_drivers(rollout: Rollout, placed: Mapping[HostName, Order]) -> Rollout:
    """Note the drivers of hosts that have orders."""
    drivers = {host: order.driver for host, order in placed.items()}
    return replace(rollout, drivers={**rollout.drivers, **drivers})
