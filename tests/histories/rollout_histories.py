"""Histories with rollouts that begin, pause, resume and abort."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from forewarn.core.basic_types import ServiceMode, Work
from forewarn.core.model.rollout import FailureLimit, Rollout, RolloutState, RolloutTerms
from forewarn.core.model.slice import Slice
from forewarn.core.rollouts import planning, progress
from tests.histories.histories import HOSTS, WAITS, WORKS, Histories, act
from tests.histories.situations import Situation

TOGETHER = {"together": "boards are swapped"}
ANY = {"max_failures": FailureLimit(amount=50, percent=True)}
IN_MAINTENANCE: list[dict[str, Any]] = [{}, {}, ANY, {"whole": True}, TOGETHER]
BACK, IN_PLACE = {"returning": True}, {"mode": ServiceMode.IN_PLACE}
IN_SERVICE: list[dict[str, Any]] = [{}, ANY, ANY, BACK, IN_PLACE, TOGETHER]


def _settled(mine: Rollout) -> Rollout:
    """Drop the number of reasons, and the reasons themselves: they may change while the rollout waits."""
    return replace(mine, due_at=None, waiting=WAITS if mine.waiting else ())


class RollingHistories(Histories):
    """A history with rollouts and everything of the other histories."""

    def rollouts(self) -> list[Rollout]:
        """Return the open rollouts."""
        found, _ = self.service.rollouts.rollouts(after=None, limit=1000)
        return [shown.rollout for shown in found if shown.rollout.open]

    @act(12)
    def begins_a_rollout(self) -> None:
        if len(self.rollouts()) > 1:
            return
        deadline = self.pick([None, None, 7200])
        work = self.pick([*WORKS, Work.HOST, Work.HOST])
        terms = RolloutTerms(
            deadline=None if deadline is None else self.service.clock.now() + timedelta(seconds=deadline),
            health=timedelta(minutes=10),
            require_poll=self.random.random() < 0.5,
            **self.pick(IN_SERVICE if work is Work.HOST else IN_MAINTENANCE),
        )
        self.do(
            self.service.roll,
            *self.random.sample(HOSTS, self.random.randint(1, 4)),
            work=work,
            hosts_at_once=self.random.randint(1, 3),
            gap=timedelta(seconds=self.pick([0, 600])),
            overlap=True,
            terms=terms,
        )

    @act(12)
    def decides_about_a_rollout(self) -> None:
        for mine in self.one(self.rollouts()):
            paused = mine.state is RolloutState.PAUSED
            verb = self.pick(["resume", "resume", "abort"] if paused else ["pause", "abort"])
            self.do(getattr(self.service.rollouts, verb), mine.id, by="test")

    @act(12)
    def aborts_a_rollout_amid_its_work(self) -> None:
        """Disturb a rollout: move its machines, degrade its hosts, or let time pass."""
        self.tidies_up()
        terms = RolloutTerms(**self.pick([{}, {}, BACK]))
        self.do(self.service.roll, self.crowded_host(), work=Work.HOST, overlap=True, terms=terms)
        for _ in range(self.pick([1, 2, 3])):
            self.approve_all()
            self.advance(self.pick([0, 1, 29, 30, 90]))
        for mine in self.rollouts()[:1]:
            if self.random.random() < 0.3:
                self.do(self.service.rollouts.pause, mine.id, by="test")
            self.do(self.service.rollouts.abort, mine.id, by="test")
        self.advance(self.pick([0, 30, 960]))

    @act(8)
    def goes_on(self) -> None:
        self.approve_all()
        self.what_is_due_next_comes()

    def check(self) -> None:
        super().check()
        self.check_that_looking_again_changes_nothing()
        self.check_waves(self.service.everything())

    def check_that_looking_again_changes_nothing(self) -> None:
        """Rule 10: look at all rollouts, not only at due ones, to find lost wake-ups."""
        before = self.rollouts()
        for mine in before:
            self.service.look_at(mine)
        assert list(map(_settled, self.rollouts())) == list(map(_settled, before))

    def check_waves(self, whole: Slice) -> None:
        """One wave at a time is under way, waiting rollouts have reasons, paused ones announce nothing."""
        open_ones = self.rollouts()
        for mine in open_ones:
            assert len(progress.unfinished(mine)) <= 1
            assert all(len(wave.hosts) <= mine.hosts_at_once for wave in mine.begun)
            assert progress.unfinished(mine) or planning.reasons(mine, now=self.service.clock.now())
        paused = {mine.id for mine in open_ones if mine.state is RolloutState.PAUSED or mine.aborting}
        aborting = {mine.id for mine in open_ones if mine.aborting}
        for order in whole.orders.values():
            let_go = bool(order.terms.abandoned_by)  # it stays open until its host is uncordoned
            assert order.terms.rollout not in paused or progress.has_begun(order) or let_go
            # `tests/rules` finds work that begins after that.
            assert order.terms.rollout not in aborting or order.terms.winding_down or let_go


def _recorded(kind: str) -> Situation:
    return lambda look: any(record.kind == kind for record in look.records)


ROLLOUT_SITUATIONS = {
    "a rollout begins": _recorded("rollout-begun"),
    "a rollout is paused": _recorded("rollout-paused"),
    "a rollout goes on": _recorded("rollout-resumed"),
    "a rollout is aborted": _recorded("rollout-aborted"),
    "what has started ends before a rollout is aborted": lambda look: any(
        order.terms.winding_down for order in look.fleet.orders.values()
    ),
    "a rollout is done": _recorded("rollout-done"),
    "a rollout works on hosts themselves": lambda look: any(
        record.kind == "rollout-begun" and ": service of" in record.reason for record in look.records
    ),
}
