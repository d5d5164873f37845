"""Waiting until nothing is going to happen to this machine; never for longer than the limit."""

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forewarn.cli import terminal
from forewarn.sdk.blocking_client import GuestClient
from forewarn.sdk.guest_errors import GuestError, NoEndpoint, Refused, Unavailable

if TYPE_CHECKING:
    from forewarn.sdk.documents import Document

# At boot the network may come later than this command.
LOOK_AGAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOutcome:
    """Why the application may start."""

    clear: bool
    why: str

    def as_json(self) -> dict[str, Any]:
        """Write it for a program."""
        return {"clear": self.clear, "reason": self.why}

    def show(self) -> None:
        """Show it; what is not as it should be, beside the output."""
        if self.clear:
            terminal.echo(self.why)
        else:
            terminal.print_error(f"{self.why}\nGoing on all the same.")


class _Watch(threading.Thread):
    """Looks for an event of this machine, in a thread that ends with the program."""

    def __init__(self, endpoint: str | None, machine: str | None) -> None:
        super().__init__(daemon=True)
        self._endpoint = endpoint
        self._machine = machine
        self.why = "the endpoint has not answered yet"
        self.outcome: WaitOutcome | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        """Watch until the list is clear, or until that can never be known."""
        while not self.ended.is_set():
            try:
                self._watch()
            except (NoEndpoint, Unavailable) as error:
                self.why = str(error)
                self.ended.wait(LOOK_AGAIN_SECONDS)
            except GuestError as error:
                self._end(clear=False, why=str(error))

    def _watch(self) -> None:
        with self._client() as client:
            machine = self._machine
            asked = machine is not None
            # Who this machine is, is asked once something answers: what does not is noted by the watch.
            for document in client.watch(trouble=self._note):
                if not asked:
                    machine, asked = self._own_name(client), True
                waiting = self._mine(document, machine)
                if not waiting:
                    self._end(clear=True, why="No event of this machine is listed.")
                    return
                self.why = f"still listed: {', '.join(waiting)}"

    def _client(self) -> GuestClient:
        """Reach the endpoint; one that is nowhere is looked for again from outside, where it is noted."""
        if self._endpoint is not None:
            return GuestClient(self._endpoint)
        with GuestClient.discover(persistence=0) as found:
            return GuestClient(found.url)

    def _own_name(self, client: GuestClient) -> str | None:
        """Ask who this machine is; without an answer every event counts as its own."""
        try:
            return client.instance().name
        except (Unavailable, Refused):
            return None

    def _mine(self, document: "Document", machine: str | None) -> list[str]:
        events = document.events if machine is None else document.naming(machine)
        odd = [f"an event that cannot be read ({each.why})" for each in document.unreadable]
        return [*(f"{event.type} ({event.status}, {event.id})" for event in events), *odd]

    def _note(self, trouble: Unavailable | None) -> None:
        if trouble is not None:
            self.why = str(trouble)

    def _end(self, *, clear: bool, why: str) -> None:
        self.outcome = WaitOutcome(clear=clear, why=why)
        self.ended.set()


def wait_until_clear(endpoint: str | None, *, machine: str | None, limit: float) -> WaitOutcome:
    """Return when no event names this machine, or after the limit, or when it can never be known."""
    watch = _Watch(endpoint, machine)
    watch.start()
    watch.ended.wait(limit)
    if watch.outcome is not None:
        return watch.outcome
    watch.ended.set()
    return WaitOutcome(clear=False, why=f"not clear within {limit:g} s: {watch.why}")
