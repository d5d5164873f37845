"""The rules over random histories with rollouts and holds; every transaction is held against them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, precondition, rule

from forewarn.core.model.rollout import Rollout, RolloutState, RolloutTerms
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.rollouts import planning, progress
from forewarn.core.words import HostName, Work
from tests.counts import tries
from tests.integration.service.test_rules import HOSTS, WAITS, Histories


def _settled(mine: Rollout) -> Rollout:
    """Leave out how many reasons it names, and which: more may come while one of them is in its way."""
    return replace(mine, due_at=None, waiting=WAITS if mine.waiting else ())


class Rolling(Histories):
    """Operators who roll work over the fleet, beside all that others do."""

    def _open(self) -> list[Rollout]:
        found, _ = self.service.rollouts.rollouts(after=None, limit=1000)
        return [shown.rollout for shown in found if shown.rollout.open]

    def _decide(self, act: Any, *args: Any, **more: Any) -> None:
        self._try(act, *args, **more)
        self.service.tick()

    @precondition(lambda self: len(self._open()) < 2)
    @rule(
        hosts=st.lists(st.sampled_from(HOSTS), min_size=1, max_size=4),
        work=st.sampled_from([Work.FREEZE, Work.REBOOT, Work.REDEPLOY]),
        at_once=st.integers(1, 3),
        gap=st.sampled_from([0, 600]),
        deadline=st.sampled_from([None, 7200]),
        require_poll=st.booleans(),
    )
    def begin(
        self, hosts: list[str], work: Work, at_once: int, gap: int, deadline: int | None, require_poll: bool
    ) -> None:
        at = None if deadline is None else self.service.clock.now() + timedelta(seconds=deadline)
        terms = RolloutTerms(deadline=at, health=timedelta(minutes=10), require_poll=require_poll)
        request = {"work": work, "hosts_at_once": at_once, "gap": timedelta(seconds=gap)}
        self._decide(self.service.roll, *hosts, **request, terms=terms)

    @precondition(lambda self: self._open())
    @rule(data=st.data(), verb=st.sampled_from(["pause", "resume", "resume", "abort"]))
    def decide(self, data: st.DataObject, verb: str) -> None:
        mine = data.draw(st.sampled_from([each.id for each in self._open()]))
        self._decide(getattr(self.service.rollouts, verb), mine, by="test")

    @rule(host=st.sampled_from([None, *HOSTS]))
    def hold(self, host: str | None) -> None:
        where = None if host is None else HostName(host)
        self._decide(
            self.service.fleet.hosts.hold, OrderRequest(by="test", reason="held"), project=None, host=where
        )

    @precondition(lambda self: self.service.fleet.views.holds())
    @rule()
    def release(self) -> None:
        self._decide(self.service.fleet.hosts.release, self.service.fleet.views.holds()[0].id, by="test")

    @invariant()
    def looking_at_rollouts_again_changes_nothing(self) -> None:
        """Rule 10: not only at what is due, for a wake-up that got lost would hide there."""
        before = self._open()
        for mine in before:
            self.service.engine._rollouts.look(mine.id, self.service.clock.now())
        assert [_settled(mine) for mine in self._open()] == [_settled(mine) for mine in before]

    @invariant()
    def one_wave_at_a_time_is_under_way_and_what_waits_has_a_reason(self) -> None:
        for mine in self._open():
            assert len(progress.unfinished(mine)) <= 1
            assert all(len(wave.hosts) <= mine.hosts_at_once for wave in mine.begun)
            assert progress.unfinished(mine) or planning.reasons(mine, now=self.service.clock.now())

    @invariant()
    def a_paused_rollout_has_nothing_announced(self) -> None:
        whole = self.service.everything()
        paused = {mine.id for mine in self._open() if mine.state is RolloutState.PAUSED or mine.aborting}
        for order in whole.orders.values():
            assert order.terms.rollout not in paused or progress.has_begun(order)


TestRolling = Rolling.TestCase
TestRolling.settings = settings(
    max_examples=tries(20, long=1000),
    stateful_step_count=30,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# The histories without rollouts have a run of their own.
del Histories
