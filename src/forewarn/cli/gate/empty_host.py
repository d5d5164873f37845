"""A host that carries nobody while it is worked on: nobody is told, so nobody may land on it meanwhile."""

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.retrying import RetryingCaller
from forewarn.cli.id_lookup import path_of
from forewarn.cli.session import Session
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.words import HostState
from forewarn.wire.answers.fleet_answers import HostWithMachinesAnswer
from forewarn.wire.answers.order_answers import OrderWithEventsAnswer

# A gate that has ended does not wait for long.
OPENING_SECONDS = 8.0


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
            self._order("cordon")
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
            self._order("uncordon", within=OPENING_SECONDS)
        except (RequestRefused, ServerUnreachable):
            uncordon = self._session.command(f"host uncordon {self._name}")
            terminal.print_error(f"{self._name} is still cordoned: run `{uncordon}`.")

    def _look(self) -> HostWithMachinesAnswer:
        return self._caller.call(lambda: self._session.client.get(self._path, HostWithMachinesAnswer).value)

    def _order(self, verb: str, *, within: float | None = None) -> None:
        key, body = new_key(), {"reason": "worked on while it carries no machines"}
        path = f"{self._path}/{verb}"
        self._caller.call(
            lambda: self._session.client.post(path, OrderWithEventsAnswer, body, key=key),
            within=within,
            heed=within is None,
        )
