"""Use cases that begin, pause, resume and abort rollouts."""

from dataclasses import replace

from forewarn.control import naming
from forewarn.control.rollouts.rollout_engine import RolloutEngine, surveyed
from forewarn.control.rollouts.rollout_views import (
    RolloutPlan,
    RolloutRequest,
    RolloutView,
    RolloutViews,
    shared_with,
)
from forewarn.control.unsaved_activity import UnsavedPolls
from forewarn.control.use_case import Context, UseCase
from forewarn.core.basic_types import Kind
from forewarn.core.errors import Conflict
from forewarn.core.model.rollout import Rollout
from forewarn.core.rollouts import planning, progress
from forewarn.core.text_formats import counted
from forewarn.store.batch import Transaction


class Rollouts(RolloutViews, UseCase):
    """Use cases that change rollouts."""

    def __init__(self, context: Context, *, polls: UnsavedPolls, engine: RolloutEngine) -> None:
        """Take the engine, whose cache must get every change of a rollout."""
        super().__init__(context, polls=polls)
        self._engine = engine

    def begin(
        self, tx: Transaction, request: RolloutRequest, prepared: RolloutPlan | None = None
    ) -> RolloutView:
        """Begin a rollout, and announce its first wave immediately if possible.

        A prepared plan is used unless the fleet has changed since. The next ticks place the orders of a large
        rollout, a few at a time, so that other callers get their turn.
        """
        now, fresh = self._clock.now(), self._polls.fresh()
        if prepared is not None and self.still_holds(tx, prepared, now):
            plan = prepared
        else:
            plan = self.prepared(tx, request, fresh, now)
        rollout = replace(plan.rollout, created_at=now)
        # A rollout that shares hosts with an open one is usually the same, sent twice.
        for also in () if request.overlap else shared_with(rollout, tx.rollouts.open()):
            raise Conflict(f'{also}: wait for it or abort it, or begin anyway with "overlap" (--overlap)')
        summary = (
            f"{rollout.action} of {counted(len(rollout.hosts), 'host')}, {request.hosts_at_once} at once"
        )
        summary = f"{summary}: {request.reason}" if request.reason else summary
        if plan.is_large:
            rollout = replace(rollout, due_at=now)
        rollout = self._engine.save(tx, rollout, now, kind=Kind.ROLLOUT_BEGUN, by=request.by, why=summary)
        if not plan.is_large:
            rollout = self._engine.carry_on(tx, rollout, now, survey=plan.survey)
        return self.shown(tx, rollout, now, warnings=plan.warnings)

    def pause(
        self, tx: Transaction, id_: str, *, by: str, reason: str = "", version: int | None = None
    ) -> RolloutView:
        """Withdraw all announcements that have not started. `version` is the one that the caller has seen."""
        now = self._clock.now()
        rollout = self._open(tx, id_, version)
        progress.check_running(rollout)
        why = f"by {by}: {reason}" if reason else f"by {by}"
        rollout = self._engine.pause(tx, rollout, by=by, why=why, now=now)
        return self.shown(tx, rollout, now)

    def resume(self, tx: Transaction, id_: str, *, by: str, version: int | None = None) -> RolloutView:
        """Continue a paused rollout. Withdrawn announcements are repeated with full notice."""
        now = self._clock.now()
        rollout = self._open(tx, id_, version)
        orders = self._engine.orders_of(tx, rollout)
        quiet = self._engine.quiet(tx, rollout, orders, now)
        rollout = progress.resumed(rollout, orders, quiet, now=now, policy=self._policy)
        # The fleet may have changed since the pause.
        survey = surveyed(tx.rollouts, rollout, rollout.left)
        if why_stuck := planning.why_impossible(rollout, survey, now=now, policy=self._policy):
            raise Conflict(f"rollout {rollout.id} cannot go on: {why_stuck}")
        rollout = progress.with_change(rollout, "resumed", by=by, now=now)
        self._engine.resume(tx, rollout, now)
        self._engine.save(tx, rollout, now, kind=Kind.ROLLOUT_RESUMED, by=by)
        rollout = self._engine.carry_on(tx, rollout, now)
        return self.shown(tx, rollout, now)

    def abort(
        self, tx: Transaction, id_: str, *, by: str, reason: str = "", version: int | None = None
    ) -> RolloutView:
        """End a rollout: started work ends normally, everything else is cancelled."""
        now = self._clock.now()
        why = f"by {by}: {reason}" if reason else f"by {by}"
        rollout = self._open(tx, id_, version)
        message = f"rollout {rollout.id} is aborted: {why}"
        self._engine.cancel_unbegun(tx, rollout, by=by, why=message, now=now)
        self._engine.wind_down(tx, rollout, by=by, why=message, now=now)
        rollout = progress.aborted(rollout, self._engine.orders_of(tx, rollout), why=why, now=now)
        rollout = progress.with_change(rollout, "aborted", by=by, now=now)
        self._engine.save(tx, rollout, now, kind=Kind.ROLLOUT_ABORTED, by=by, why=why)
        rollout = self._engine.carry_on(tx, rollout, now)
        return self.shown(tx, rollout, now)

    def _open(self, tx: Transaction, id_: str, version: int | None) -> Rollout:
        rollout = naming.existing(tx.rollouts.find(id_), "rollout", id_)
        progress.check_open(rollout, version=version)
        return rollout
