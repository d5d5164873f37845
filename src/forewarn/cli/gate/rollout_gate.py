"""Seeing a gated rollout through: for each of its hosts the command runs once its guests are ready.

The rollout itself is the server's: which hosts come when, and that a failure pauses it. So a gate that has
gone is taken up again by the rollout's id, and goes on where the rollout is.
"""

import shlex
import threading
from collections.abc import Iterable, Sequence

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.following.rollout_follow import reasons
from forewarn.cli.gate.calls import Interrupts, RetryingCaller
from forewarn.cli.gate.gated_command import EmptyHost, GatedCommand, GateNotBegun
from forewarn.cli.gate.gated_order import NO_SERVER, GatedOrder, is_done_here, under_way, was_empty
from forewarn.cli.session import Session
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.model.rollout import RolloutState, WaveState
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer

# As often as a guest polls.
LOOK_EVERY = 1.0


class RolloutGate:
    """One rollout whose work is done here."""

    def __init__(
        self,
        session: Session,
        interrupts: Interrupts,
        rollout: RolloutAnswer,
        command: Sequence[str],
        *,
        over: Iterable[str] = (),
        flags: str = "",
    ) -> None:
        """Take what is run for each host; `over` are the orders that were over before this gate came."""
        self._session = session
        self._interrupts = interrupts
        self._caller = RetryingCaller(interrupts)
        self._id = f"{rollout.id}"
        self._command = command
        self._again = f"gate rollout --again {self._id}{flags}"
        self._running: dict[str, GatedCommand] = {}
        self._empty: dict[str, EmptyHost] = {}  # by the order of a host that carries nobody
        self._over = set(over)  # the orders of which nothing more is to be done here
        self._failed = 0  # the code of the first command that failed
        self._said: list[str] = []

    def run(self) -> None:
        """See the rollout through, and end with what became of it."""
        try:
            while True:
                rollout = self._caller.call(self._look)
                self._say(rollout)
                self._see_to_hosts(rollout)
                if not self._running and _stands(rollout):
                    break
                with self._interrupts.heeded():
                    threading.Event().wait(LOOK_EVERY)
        except KeyboardInterrupt:
            self._interrupted()
            raise click.exceptions.Exit(1) from None
        except (RequestRefused, click.exceptions.Exit):
            self._see_out()
            raise
        self._end(rollout)

    def _look(self) -> RolloutAnswer:
        return self._session.client.get(f"/v1/rollouts/{self._id}", RolloutAnswer).value

    def _say(self, rollout: RolloutAnswer) -> None:
        """Print what has changed since the last look."""
        begun = [
            f"wave {number} of {len(rollout.waves)} ({formatting.listing(wave.hosts)}): {wave.state}"
            for number, wave in enumerate(rollout.waves, start=1)
            if wave.state is not WaveState.PLANNED
        ]
        idle = all(wave.state in (WaveState.PLANNED, WaveState.DONE) for wave in rollout.waves)
        lines = [*begun, *(reasons(rollout) if idle else [])]
        for line in lines:
            if line not in self._said:
                terminal.echo(f"  {line}")
        self._said = lines

    # The hosts

    def _see_to_hosts(self, rollout: RolloutAnswer) -> None:
        for command in [each for each in self._running.values() if each.code is not None]:
            self._ended(command)
        for id_ in (order for wave in rollout.waves for order in wave.orders):
            if id_ not in self._over and id_ not in self._running:
                order = self._caller.call(lambda id_=id_: self._session.order(id_))  # type: ignore[misc]
                self._see_to(order, rollout)

    def _see_to(self, order: OrderAnswer, rollout: RolloutAnswer) -> None:
        """Run the command for a host whose turn it is, also for one that carries nobody."""
        if not is_done_here(order):
            self._over.add(order.id)
        elif machines := under_way(order):
            self._begin(order, machines)
        elif was_empty(order):
            # A wave of such hosts is over at once: so many others may be at work already.
            if len(self._running) < rollout.hosts_at_once and not rollout.aborting:
                self._begin(order, [])
        elif order.ended_at is not None:
            self._over.add(order.id)

    def _begin(self, order: OrderAnswer, machines: list[str]) -> None:
        gated = GatedOrder(self._session, self._caller, order)
        if not machines and order.host is not None:
            self._empty[order.id] = EmptyHost(self._session, self._caller, order.host)
            try:
                self._empty[order.id].close()
            except RequestRefused as refusal:
                return self._report(gated, machines, 1, str(refusal))
        on = f" on {formatting.listing(machines)}" if machines else ", which carries no machines"
        terminal.echo(f"{order.host}: the work may begin{on}: {' '.join(self._command)}")
        try:
            command = GatedCommand(gated, self._command, machines, FOREWARN_ROLLOUT=self._id)
        except GateNotBegun as error:
            return self._report(gated, machines, 1, str(error))
        self._running[order.id] = command
        return None

    def _ended(self, command: GatedCommand) -> None:
        code = command.code or 0
        del self._running[command.order.id]
        command.close()
        self._report(command.order, command.machines, code, f"{command.name} ended with code {code}")

    def _report(self, order: GatedOrder, machines: Sequence[str], code: int, problem: str) -> None:
        """Report how the work of a host ended; a failure fails its order, and so pauses the rollout."""
        self._failed = self._failed or code
        if not machines:
            self._over.add(order.id)
            self._open(order)
            if code:
                terminal.print_error(f"{order.host}: {problem}")
                self._pause(f"{order.host}: {problem}")
            return
        try:
            order.report(problem, "fail" if code else "complete", machines)
        except click.exceptions.Exit as unreported:
            self._go_on_without(order, unreported.exit_code)
        except RequestRefused as refusal:
            terminal.print_error(f"{order.host}: {refusal}")
            self._go_on_without(order, 1)
        else:
            self._say_reported(order, machines, code, problem)

    def _open(self, order: GatedOrder) -> None:
        if empty := self._empty.pop(order.id, None):
            empty.open()

    def _go_on_without(self, order: GatedOrder, code: int) -> None:
        """See to the other hosts, whose commands are at work, though one could not be reported."""
        self._over.add(order.id)
        self._failed = self._failed or code

    def _say_reported(self, order: GatedOrder, machines: Sequence[str], code: int, problem: str) -> None:
        if code:
            # It is taken up again by whoever mends it; here it would be run in a circle.
            self._over.add(order.id)
            terminal.print_error(f"{order.host}: {problem}: order {order.id} has failed.")
        else:
            terminal.echo(f"{order.host}: done with {formatting.listing(machines)}.")

    # The end

    def _end(self, rollout: RolloutAnswer) -> None:
        if rollout.state is RolloutState.DONE and not self._failed:
            terminal.echo(f"Rollout {self._id} is done: {formatting.counted(len(rollout.hosts), 'host')}.")
            if given := formatting.notice(rollout.notice):
                terminal.echo(f"  notice: {given}")
            return
        why = f": {rollout.why}" if rollout.why else ""
        said = f"rollout {self._id} is {formatting.rollout_state(rollout)}{why}"
        said += f"\n{formatting.rollout_progress(rollout)}."
        if rollout.ended_at is None:
            said += f"\n{self._ways_on()}"
        terminal.print_error(said)
        raise click.exceptions.Exit(self._failed or 1)

    def _ways_on(self) -> str:
        again = self._session.command(f"{self._again} -- {shlex.join(self._command)}")
        abandon, abort = self._session.command("order abandon"), self._session.command("rollout abort")
        return (
            f"Go on with `{again}`, which does again what failed unless you `{abandon}` it before; "
            f"or abort it with `{abort} {self._id}`."
        )

    def _interrupted(self) -> None:
        """End the commands, and pause the rollout: what it would announce nobody is here to do."""
        for command in self._running.values():
            command.end(self._interrupts)
            command.close()
            ended = f"{command.name} was interrupted, and ended with code {command.code}"
            terminal.print_error(f"{command.order.host}: {ended}: only you know how far the work got.")
            self._open(command.order)
        self._pause("its gate was interrupted")
        again = self._session.command(f"{self._again} --yes -- {shlex.join(self._command)}")
        terminal.print_error(f"Rollout {self._id} goes on with `{again}`.")

    def _see_out(self) -> None:
        """Wait for the commands that are at work, though the server does not let them be reported."""
        for command in self._running.values():
            try:
                with self._interrupts.heeded():
                    command.wait()
            except KeyboardInterrupt:
                command.end(self._interrupts)
            command.close()
            self._open(command.order)
            ended = f"{command.order.host}: {command.name} ended with code {command.code}"
            report = self._session.command(f"order {'fail' if command.code else 'complete'}")
            terminal.print_error(f"{ended}, which is not reported: run `{report} {command.order.id}`")

    def _pause(self, why: str) -> None:
        key = new_key()
        path = f"/v1/rollouts/{self._id}/pause"
        try:
            self._caller.insist(
                lambda: self._session.client.post(path, RolloutAnswer, {"reason": why}, key=key).value
            )
        except RequestRefused as refusal:
            # It is paused already, or over.
            terminal.print_error(str(refusal))
        except ServerUnreachable:
            pause = self._session.command(f"rollout pause {self._id}")
            terminal.print_error(
                f"Rollout {self._id} could not be paused: {self._caller.trouble}\n"
                f"It would go on with nobody to do its work: run `{pause}` once the server is back."
            )
            raise click.exceptions.Exit(NO_SERVER) from None


def _stands(rollout: RolloutAnswer) -> bool:
    """Return whether a rollout does not go on by itself."""
    return rollout.ended_at is not None or formatting.rollout_state(rollout) == "paused"
