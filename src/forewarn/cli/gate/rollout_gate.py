"""The gate of a rollout: run the command for each host once its guests are ready.

The server chooses the order of the hosts, and pauses the rollout after a failure. A new gate can therefore
resume the rollout by its id.
"""

import shlex
import threading
from collections.abc import Iterable, Sequence

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.gated_command import CommandNotStarted, EmptyHost, GatedCommand
from forewarn.cli.gate.gated_order import NO_SERVER, GatedOrder, is_done_here, under_way, was_empty
from forewarn.cli.gate.interrupts import Interrupts, RetryingCaller
from forewarn.cli.live.rollout_follow import reasons, started_waves
from forewarn.cli.session import Session
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.model.rollout import RolloutState, WaveState
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer

# As often as a guest polls.
LOOK_SECONDS = 1.0


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
        """Take the command to run for each host; `over` are orders that were already over."""
        self._session = session
        self._interrupts = interrupts
        self._caller = RetryingCaller(interrupts)
        self._id = f"{rollout.id}"
        self._command = command
        self._again = f"gate rollout --again {self._id}{flags}"
        self._running: dict[str, GatedCommand] = {}
        self._empty: dict[str, EmptyHost] = {}  # by the id of the order
        self._over = set(over)  # orders that need nothing more from this gate
        self._failed = 0  # the exit code of the first failed command
        self._shown: list[str] = []

    def run(self) -> None:
        """Run the commands until the rollout ends or pauses, and show the outcome."""
        try:
            while True:
                rollout = self._caller.call(self._look)
                self._show_changes(rollout)
                self._treat_hosts(rollout)
                if not self._running and _is_stopped(rollout):
                    break
                with self._interrupts.raising():
                    threading.Event().wait(LOOK_SECONDS)
        except KeyboardInterrupt:
            self._interrupted()
            raise click.exceptions.Exit(1) from None
        except (RequestRefused, click.exceptions.Exit):
            self._finish_commands()
            raise
        self._end(rollout)

    def _look(self) -> RolloutAnswer:
        return self._session.client.get(f"/v1/rollouts/{self._id}", RolloutAnswer).value

    def _show_changes(self, rollout: RolloutAnswer) -> None:
        """Print the lines that have changed."""
        idle = all(wave.state in (WaveState.PLANNED, WaveState.DONE) for wave in rollout.waves)
        lines = [*started_waves(rollout), *(reasons(rollout) if idle else [])]
        for line in lines:
            if line not in self._shown:
                terminal.echo(f"  {line}")
        self._shown = lines

    def _treat_hosts(self, rollout: RolloutAnswer) -> None:
        for command in [each for each in self._running.values() if each.code is not None]:
            self._ended(command)
        for id_ in (order for wave in rollout.waves for order in wave.orders):
            if id_ not in self._over and id_ not in self._running:
                order = self._caller.call(lambda id_=id_: self._session.order(id_))  # type: ignore[misc]
                self._treat(order, rollout)

    def _treat(self, order: OrderAnswer, rollout: RolloutAnswer) -> None:
        """Run the command for a host that is ready, even if it has no machines."""
        if not is_done_here(order):
            self._over.add(order.id)
        elif machines := under_way(order):
            self._begin(order, machines)
        elif was_empty(order):
            # Waves of empty hosts are over at once, so limit the commands that run together.
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
        on = f" on {formatting.listing(machines)}" if machines else " (no machines)"
        terminal.echo(f"{order.host}: work may start{on}: {' '.join(self._command)}")
        try:
            command = GatedCommand(gated, self._command, machines, FOREWARN_ROLLOUT=self._id)
        except CommandNotStarted as error:
            return self._report(gated, machines, 1, str(error))
        self._running[order.id] = command
        return None

    def _ended(self, command: GatedCommand) -> None:
        code = command.code or 0
        del self._running[command.order.id]
        command.close()
        self._report(command.order, command.machines, code, f"{command.name} ended with code {code}")

    def _report(self, order: GatedOrder, machines: Sequence[str], code: int, problem: str) -> None:
        """Report how the work of a host ended; a failure pauses the rollout."""
        self._failed = self._failed or code
        if not machines:
            self._over.add(order.id)
            self._uncordon(order)
            if code:
                terminal.print_error(f"{order.host}: {problem}")
                self._pause(f"{order.host}: {problem}")
            return
        try:
            order.report(problem, "fail" if code else "complete", machines)
        except click.exceptions.Exit as unreported:
            self._skip(order, unreported.exit_code)
        except RequestRefused as refusal:
            terminal.print_error(f"{order.host}: {refusal}")
            self._skip(order, 1)
        else:
            self._show_reported(order, machines, code, problem)

    def _uncordon(self, order: GatedOrder) -> None:
        if empty := self._empty.pop(order.id, None):
            empty.open()

    def _skip(self, order: GatedOrder, code: int) -> None:
        """Continue with the other hosts after a report has failed."""
        self._over.add(order.id)
        self._failed = self._failed or code

    def _show_reported(self, order: GatedOrder, machines: Sequence[str], code: int, problem: str) -> None:
        if code:
            # Only a person retries it: this gate would run it in a loop.
            self._over.add(order.id)
            terminal.print_error(f"{order.host}: {problem}: order {order.id} has failed")
        else:
            terminal.echo(f"{order.host}: done: {formatting.listing(machines)}.")

    def _end(self, rollout: RolloutAnswer) -> None:
        if rollout.state is RolloutState.DONE and not self._failed:
            terminal.echo(f"Rollout {self._id} is done: {formatting.counted(len(rollout.hosts), 'host')}.")
            if given := formatting.notice(rollout.notice):
                terminal.echo(f"  notice: {given}")
            return
        why = f": {rollout.why}" if rollout.why else ""
        text = f"rollout {self._id} is {formatting.rollout_state(rollout)}{why}"
        text += f"\n{formatting.rollout_progress(rollout)}."
        if rollout.ended_at is None:
            again = self._session.command(f"{self._again} -- {shlex.join(self._command)}")
            abandon, abort = self._session.command("order abandon"), self._session.command("rollout abort")
            text += f"\nResume with `{again}`; it retries failed orders that you did not `{abandon}`."
            text += f"\nAbort with `{abort} {self._id}`."
        terminal.print_error(text)
        raise click.exceptions.Exit(self._failed or 1)

    def _interrupted(self) -> None:
        """Stop the commands, and pause the rollout, because no gate would do further work."""
        for command in self._running.values():
            command.end(self._interrupts)
            command.close()
            ended = f"{command.name} was interrupted, and ended with code {command.code}"
            terminal.print_error(f"{command.order.host}: {ended}; check how far the work got")
            self._uncordon(command.order)
        self._pause("its gate was interrupted")
        again = self._session.command(f"{self._again} --yes -- {shlex.join(self._command)}")
        terminal.print_error(f"resume rollout {self._id} with `{again}`")

    def _finish_commands(self) -> None:
        """Wait for running commands whose result the server refuses."""
        for command in self._running.values():
            try:
                with self._interrupts.raising():
                    command.wait()
            except KeyboardInterrupt:
                command.end(self._interrupts)
            command.close()
            self._uncordon(command.order)
            ended = f"{command.order.host}: {command.name} ended with code {command.code}"
            report = self._session.command(f"order {'fail' if command.code else 'complete'}")
            terminal.print_error(f"{ended}; report it with `{report} {command.order.id}`")

    def _pause(self, why: str) -> None:
        key = new_key()
        path = f"/v1/rollouts/{self._id}/pause"
        try:
            self._caller.call_last(
                lambda: self._session.client.post(path, RolloutAnswer, {"reason": why}, key=key).value
            )
        except RequestRefused as refusal:
            # The rollout is paused already, or over.
            terminal.print_error(str(refusal))
        except ServerUnreachable:
            pause = self._session.command(f"rollout pause {self._id}")
            terminal.print_error(
                f"rollout {self._id} could not be paused: {self._caller.trouble}\n"
                f"It will continue without a gate. Run `{pause}` once the server answers."
            )
            raise click.exceptions.Exit(NO_SERVER) from None


def _is_stopped(rollout: RolloutAnswer) -> bool:
    """Return whether a rollout is over or paused."""
    return rollout.ended_at is not None or formatting.rollout_state(rollout) == "paused"
