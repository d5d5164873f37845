"""The command that does the work of an order, and the cordon of an empty host meanwhile."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from signal import SIGINT

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.gated_order import GatedOrder
from forewarn.cli.gate.interrupts import Interrupts, RetryingCaller
from forewarn.cli.options import path_of
from forewarn.cli.session import Session
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.basic_types import HostState
from forewarn.wire.answers.fleet_answers import HostWithMachinesAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

# Heartbeats within the limit after which silence is a failure.
BEATS_IN_LIMIT = 4
# The time that a command gets to exit after a signal.
ENDING_SECONDS = 10.0
# The time to wait for the last heartbeat.
LAST_BEAT_SECONDS = 1.0


class CommandNotStarted(Exception):
    """The command was not started."""


class GatedCommand:
    """A running command and the machines that it works on; without machines it sends no heartbeats."""

    def __init__(
        self, order: GatedOrder, command: Sequence[str], machines: Sequence[str], **more: str | None
    ) -> None:
        """Start the command; raise CommandNotStarted if that is impossible."""
        self.order = order
        self.name = command[0]
        self.machines = machines
        self._stop = threading.Event()
        self._terminated = False
        self._beats = threading.Thread(target=self._send_heartbeats, daemon=True)
        if machines and (stop := order.begin()) is not None:
            raise CommandNotStarted(f"{command[0]} was not run: {stop}")
        self._process = _start(command, _environment(order, machines, more))
        if machines:
            self._beats.start()

    @property
    def code(self) -> int | None:
        """The exit code, once the command has exited."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for the command to exit, and return its exit code."""
        return self._process.wait()

    def close(self) -> None:
        """Stop the heartbeats."""
        self._stop.set()
        if self.machines:
            self._beats.join(LAST_BEAT_SECONDS)

    def end(self, interrupts: Interrupts) -> None:
        """Terminate the command because this program is interrupted; kill it if it does not exit."""
        terminal.try_print_error(f"stopping {self.name}…")
        harder = [self._process.terminate, self._process.kill]
        # Ctrl-C at a terminal reaches the command too, and many programs exit at once on a second signal.
        if interrupts.first == SIGINT and sys.stdin.isatty():
            harder.insert(0, lambda: None)
        for signal_end in harder:
            signal_end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING_SECONDS)
                return

    def _send_heartbeats(self) -> None:
        """Send heartbeats while the command runs; the next one makes up for a lost one."""
        while True:
            with suppress(RequestRefused, ServerUnreachable):
                self._obey(self.order.beat(key=new_key()).stop)
            if self._stop.wait(self.order.silence / BEATS_IN_LIMIT):
                return

    def _obey(self, stop: str | None) -> None:
        """Terminate the command, once, if its order was cancelled; it may ignore that."""
        if stop is None or self._terminated:
            return
        self._terminated = True
        terminal.try_print_error(f"order {self.order.id} is {stop}; stopping {self.name}…")
        self._process.terminate()


def _start(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(command, env=environment)  # noqa: S603 - the operator's own command
    except OSError as error:
        raise CommandNotStarted(f"{command[0]} cannot be run: {error.strerror}") from None


def _environment(
    order: GatedOrder, machines: Sequence[str], more: Mapping[str, str | None]
) -> dict[str, str]:
    named = ",".join(name for name in machines if name != order.host)  # the host itself, if it is empty
    own = {"FOREWARN_ORDER": order.id, "FOREWARN_MACHINES": named, "FOREWARN_HOST": order.host, **more}
    return {**os.environ, **{name: value for name, value in own.items() if value is not None}}


class EmptyHost:
    """An empty host, cordoned while a command works on it."""

    def __init__(self, session: Session, caller: RetryingCaller, name: str) -> None:
        self._session = session
        self._caller = caller
        self._path = path_of("host", name)
        self._name = name
        self._cordoned = False

    def close(self) -> None:
        """Cordon the host; refuse if a machine has moved there meanwhile."""
        if self._look().state is HostState.OK:
            self._caller.call(self._order("cordon"))
            self._cordoned = True
        if carried := self._look().machines:
            self.open()
            came = formatting.listing(carried)
            raise RequestRefused(
                f"{self._name} now has {came}: start the gate again, so that the guests get notice"
            )

    def open(self) -> None:
        """Uncordon the host, if it was not cordoned before."""
        if not self._cordoned:
            return
        try:
            self._caller.call_last(self._order("uncordon"))
        except (RequestRefused, ServerUnreachable):
            uncordon = self._session.command(f"host uncordon {self._name}")
            terminal.print_error(f"{self._name} is still cordoned; run `{uncordon}`")

    def _look(self) -> HostWithMachinesAnswer:
        return self._caller.call(lambda: self._session.client.get(self._path, HostWithMachinesAnswer).value)

    def _order(self, verb: str) -> Callable[[], object]:
        key, body = new_key(), {"reason": "work on the empty host"}
        path = f"{self._path}/{verb}"
        return lambda: self._session.client.post(path, OrderWithEventsAnswer, body, key=key)
