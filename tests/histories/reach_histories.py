"""Histories with unreachable hosts; once all can be reached, announced work starts."""

from collections.abc import Mapping

from forewarn.control.engine.incoming_changes import ReachabilitySaver
from forewarn.control.host_reachability import UNKNOWN
from forewarn.core.basic_types import HostName, Kind, ServiceMode, StageKind, StageState
from tests.helpers.database.transactions import InTransactions
from tests.histories.histories import HOSTS, act
from tests.histories.moving_histories import MovingHistories
from tests.histories.progress_histories import ProgressHistories
from tests.histories.service_histories import ServiceHistories, in_stage
from tests.histories.situations import Situation


class ReachHistories(ProgressHistories, ServiceHistories, MovingHistories):
    """A history that empties hosts and moves machines while other hosts are unreachable."""

    def drivers_say(self, why: str | None, *hosts: str) -> None:
        """Report whether drivers reach hosts, or why not."""
        known = UNKNOWN.heard(why, at=self.service.clock.now())
        reach = InTransactions(ReachabilitySaver(self.service.context), self.service.transact)
        self.do(reach.save, {HostName(host): known for host in hosts})
        self.look(self.service.everything())

    @act(200)
    def hosts_come_and_go(self) -> None:
        """Make some hosts unreachable, perhaps all targets of a machine."""
        self.drivers_say("no route", *self.random.sample(HOSTS, self.pick([1, 2, 3, 4])))
        self.advance(self.pick([1, 300, 960, 2700]))
        self.drivers_say(None, *self.random.sample(HOSTS, self.pick([0, 2, 4])))

    @act(700)
    def empties_a_host_while_others_are_away(self) -> None:
        """Make a host unreachable, before or after its work is announced; perhaps all hosts."""
        self.tidies_up()
        host, others = self.crowded_host(), self.random.sample(HOSTS, self.pick([1, 3, 4]))
        first = self.random.random() < 0.5
        if first:
            self.drivers_say("no route", *others)
        self.serve(host, mode=self.pick(list(ServiceMode)), returning=self.random.random() < 0.7)
        if not first:
            self.drivers_say("no route", *others)
        for _ in range(self.pick([1, 3, 5])):
            self.goes_on()
            if self.random.random() < 0.4:
                self.drivers_say(self.pick([None, "no route"]), self.pick(HOSTS))

    @act(600)
    def is_away_when_its_machines_come_back(self) -> None:
        self.tidies_up()
        self.drivers_say(None, *HOSTS)
        host = self.crowded_host()
        self.serve(host, mode=ServiceMode.EVACUATE, returning=True)
        for _ in range(self.pick([2, 4])):
            self.approve_all()
            self.goes_on()
        self.drivers_say("no route", host)
        for _ in range(self.pick([2, 4])):
            self.goes_on()

    def goes_on(self) -> None:
        if self.random.random() < 0.6:
            self.approve_all()
        self.advance(self.pick([1, 90, 960]))
        self.look(self.service.everything())
        self.reports_what_is_done_outside()

    def end(self) -> None:
        self.drivers_say(None, *HOSTS)
        super().end()


REACH_SITUATIONS: Mapping[str, Situation] = {
    "a host cannot be reached": lambda look: look.recorded(Kind.HOST_UNREACHABLE),
    "a machine waits because no host can be reached": lambda look: look.waits("finds no host: "),
    "machines wait to come back": lambda look: look.waits("machines come back later"),
    "a host can be reached again": lambda look: look.recorded(Kind.HOST_REACHABLE),
    "machines leave a host": in_stage(StageKind.EVACUATE, StageState.STARTED),
}
