"""A command that does the work of an order, or works on a host that is kept empty meanwhile."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from signal import SIGINT

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.calls import Interrupts, RetryingCaller
from forewarn.cli.gate.gated_order import GatedOrder
from forewarn.cli.options import path_of
from forewarn.cli.session import Session
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.basic_types import HostState
from forewarn.wire.answers.fleet_answers import HostWithMachinesAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

# Well within the limit after which silence is a failure.
BEATS_IN_LIMIT = 4
# What a command may take to tidy up.
ENDING_SECONDS = 10.0
# What the last heartbeat may take.
LAST_BEAT_SECONDS = 1.0


class GateNotBegun(Exception):
    """The command cannot be run."""


class GatedCommand:
    """A running command, and the machines that it works on; without an order's machines it sends no word."""

    def __init__(
        self, order: GatedOrder, command: Sequence[str], machines: Sequence[str], **more: str | None
    ) -> None:
        """Begin; GateNotBegun if the command cannot be run."""
        self.order = order
        self.name = command[0]
        self.machines = machines
        self._stop = threading.Event()
        self._told_to_stop = False
        self._beats = threading.Thread(target=self._send_heartbeats, daemon=True)
        if machines and (stop := order.take_up()) is not None:
            raise GateNotBegun(f"{command[0]} is not run: {stop}")
        self._process = _begun(command, _environment(order, machines, more))
        if machines:
            self._beats.start()

    @property
    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        return self._process.wait()

    def close(self) -> None:
        """Send no more heartbeats."""
        self._stop.set()
        if self.machines:
            self._beats.join(LAST_BEAT_SECONDS)

    def end(self, interrupts: Interrupts) -> None:
        """End it because this program is interrupted: first kindly, then not."""
        terminal.try_print_error(f"Ending {self.name}…")
        harder = [self._process.terminate, self._process.kill]
        # Ctrl-C at a terminal has reached the command too; to many a second signal means: drop everything.
        if interrupts.came == SIGINT and sys.stdin.isatty():
            harder.insert(0, lambda: None)
        for signal_end in harder:
            signal_end()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING_SECONDS)
                return

    def _send_heartbeats(self) -> None:
        """Send heartbeats while the work goes on; a lost one does no harm while the next one comes."""
        while True:
            with suppress(RequestRefused, ServerUnreachable):
                self._obey(self.order.beat(key=new_key()).stop)
            if self._stop.wait(self.order.silence / BEATS_IN_LIMIT):
                return

    def _obey(self, stop: str | None) -> None:
        """End the command because its order is called off, once and kindly: it may be past stopping."""
        if stop is None or self._told_to_stop:
            return
        self._told_to_stop = True
        terminal.try_print_error(f"Order {self.order.id} is {stop}. Asking {self.name} to end…")
        self._process.terminate()


def _begun(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(command, env=environment)  # noqa: S603 - their runbook
    except OSError as error:
        raise GateNotBegun(f"{command[0]} cannot be run: {error.strerror}") from None


def _environment(
    order: GatedOrder, machines: Sequence[str], more: Mapping[str, str | None]
) -> dict[str, str]:
    named = ",".join(name for name in machines if name != order.host)  # an empty host is worked on itself
    said = {"FOREWARN_ORDER": order.id, "FOREWARN_MACHINES": named, "FOREWARN_HOST": order.host}
    return {**os.environ, **{name: value for name, value in {**said, **more}.items() if value is not None}}


class EmptyHost:
    """Keeps an empty host empty, by a cordon if it has none."""

    def __init__(self, session: Session, caller: RetryingCaller, name: str) -> None:
        self._session = session
        self._caller = caller
        self._path = path_of("host", name)
        self._name = name
        self._cordoned = False

    def close(self) -> None:
        """Let it take no machines; refuse if one has come meanwhile."""
        if self._look().state is HostState.OK:
            self._caller.call(self._order("cordon"))
            self._cordoned = True
        if carried := self._look().machines:
            self.open()
            came = formatting.listing(carried)
            raise RequestRefused(f"{self._name} carries {came} by now: gate it anew, so that they are told")

    def open(self) -> None:
        """Let it take machines again, if it did before."""
        if not self._cordoned:
            return
        try:
            self._caller.insist(self._order("uncordon"))
        except (RequestRefused, ServerUnreachable):
            uncordon = self._session.command(f"host uncordon {self._name}")
            terminal.print_error(f"{self._name} is still cordoned: run `{uncordon}`.")

    def _look(self) -> HostWithMachinesAnswer:
        return self._caller.call(lambda: self._session.client.get(self._path, HostWithMachinesAnswer).value)

    def _order(self, verb: str) -> Callable[[], object]:
        key, body = new_key(), {"reason": "worked on while it carries no machines"}
        path = f"{self._path}/{verb}"
        return lambda: self._session.client.post(path, OrderWithEventsAnswer, body, key=key)
