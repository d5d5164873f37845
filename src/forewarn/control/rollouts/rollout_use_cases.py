"""What can be asked of rollouts: begin, pause, resume, abort."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

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
from forewarn.store.queries.rollouts import RolloutQueries


class Rollouts(RolloutViews, UseCase):
    """The use cases about rollouts."""

    def __init__(self, context: Context, *, polls: UnsavedPolls, engine: RolloutEngine) -> None:
        """Take the engine that looks at rollouts later: its cache knows what was saved."""
        super().__init__(context, polls=polls)
        self._engine = engine

    def begin(
        self, tx: Transaction, request: RolloutRequest, prepared: RolloutPlan | None = None
    ) -> RolloutView:
        """Begin a rollout; its first wave is announced at once if nothing is in the way.

        What was prepared for it counts unless the fleet has changed since. The orders of a large rollout are
        for the next tick, which places some at a time: others get their turn before.
        """
        now, fresh = self._clock.now(), self._polls.fresh()
        if prepared is not None and self.still_holds(tx, prepared, now):
            plan = prepared
        else:
            plan = self.prepared(tx, request, fresh, now)
        mine = replace(plan.rollout, created_at=now)
        if not request.overlap:
            _check_apart(mine, tx.rollouts.open())
        said = f"{mine.action} of {counted(len(mine.hosts), 'host')}, {request.hosts_at_once} at once"
        said = f"{said}: {request.reason}" if request.reason else said
        if plan.is_large:
            mine = replace(mine, due_at=now)
        mine = self._engine.save(tx, mine, now, kind=Kind.ROLLOUT_BEGUN, by=request.by, why=said)
        if not plan.is_large:
            mine = self._engine.carry_on(tx, mine, now, survey=plan.survey)
        return self.shown(tx, mine, now, warnings=plan.warnings)

    def pause(
        self, tx: Transaction, id_: str, *, by: str, reason: str = "", version: int | None = None
    ) -> RolloutView:
        """Withdraw what is announced and not started; `version` is the one that the caller has seen."""
        now = self._clock.now()
        mine = self._open(tx, id_, version)
        progress.check_running(mine)
        why = f"by {by}: {reason}" if reason else f"by {by}"
        mine = self._engine.pause(tx, mine, by=by, why=why, now=now)
        return self.shown(tx, mine, now)

    def resume(self, tx: Transaction, id_: str, *, by: str, version: int | None = None) -> RolloutView:
        """Go on; what was withdrawn is announced anew with full notice."""
        now = self._clock.now()
        mine = self._open(tx, id_, version)
        orders = self._engine.orders_of(tx, mine)
        quiet = self._engine.quiet(tx, mine, orders, now)
        mine = progress.resumed(mine, orders, quiet, now=now, policy=self._policy)
        self._check_possible(tx.rollouts, mine, now)
        mine = progress.with_change(mine, "resumed", by=by, now=now)
        self._engine.resume(tx, mine, now)
        self._engine.save(tx, mine, now, kind=Kind.ROLLOUT_RESUMED, by=by)
        mine = self._engine.carry_on(tx, mine, now)
        return self.shown(tx, mine, now)

    def abort(
        self, tx: Transaction, id_: str, *, by: str, reason: str = "", version: int | None = None
    ) -> RolloutView:
        """End a rollout: what has started ends; all else is called off, and nothing more is announced."""
        now = self._clock.now()
        why = f"by {by}: {reason}" if reason else f"by {by}"
        mine = self._open(tx, id_, version)
        said = f"rollout {mine.id} is aborted: {why}"
        self._engine.cancel_unbegun(tx, mine, by=by, why=said, now=now)
        self._engine.wind_down(tx, mine, by=by, why=said, now=now)
        mine = progress.aborted(mine, self._engine.orders_of(tx, mine), why=why, now=now)
        mine = progress.with_change(mine, "aborted", by=by, now=now)
        self._engine.save(tx, mine, now, kind=Kind.ROLLOUT_ABORTED, by=by, why=why)
        mine = self._engine.carry_on(tx, mine, now)
        return self.shown(tx, mine, now)

    def _open(self, tx: Transaction, id_: str, version: int | None) -> Rollout:
        mine = naming.existing(tx.rollouts.find(id_), "rollout", id_)
        progress.check_open(mine, version=version)
        return mine

    def _check_possible(self, rollouts: RolloutQueries, mine: Rollout, now: datetime) -> None:
        """Refuse to go on with what could not be begun now: the fleet may have changed meanwhile."""
        survey = surveyed(rollouts, mine, mine.left)
        no_way = planning.why_impossible(mine, survey, now=now, policy=self._policy)
        if no_way:
            raise Conflict(f"rollout {mine.id} cannot go on: {no_way}")


def _check_apart(mine: Rollout, others: Iterable[Rollout]) -> None:
    """Refuse hosts that another rollout has still to do: most often it is the same one, sent twice."""
    for also in shared_with(mine, others):
        raise Conflict(f'{also}: wait for it or abort it, or begin all the same with "overlap" (--overlap)')
