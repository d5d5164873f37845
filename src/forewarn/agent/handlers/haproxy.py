"""`haproxy`: take this machine's servers out of a load balancer, and put them back, over its runtime socket.

Draining lets sessions end by themselves, for as long as there is time; new ones go elsewhere at once.
"""

import asyncio
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.agent.facts import checked_template, facts_of, filled
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side, Task
from forewarn.core.errors import Invalid
from forewarn.wire import fields

ANSWER_SECONDS = 5.0
LOOK_EVERY = 0.5
# Left for what comes after draining, of the time before the event starts.
RESERVE_SECONDS = 5.0
# How HAProxy calls the state of a server that was taken out by hand.
MAINTENANCE = "MAINT"


def _socket(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not (value.startswith("/") or ":" in value):
        raise Invalid(f"expected the path of HAProxy's stats socket, or HOST:PORT, got {fields.shown(value)}")
    return value


def _server(value: object) -> str:
    backend, _, name = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not backend or not name or any(each.isspace() or each == ";" for each in f"{backend}{name}"):
        raise Invalid(f'expected BACKEND/SERVER, as "web/${{machine}}", got {fields.shown(value)}')
    return checked_template(str(value))


def _servers(value: object) -> tuple[str, ...]:
    found = fields.sequence(value)
    if not found:
        raise Invalid("expected at least one BACKEND/SERVER, got an empty list")
    return tuple(_server(each) for each in found)


def _sockets(value: object) -> tuple[str, ...]:
    return tuple(_socket(each) for each in (value if isinstance(value, list) and value else [value]))


READERS = {"socket": _sockets, "servers": _servers, "wait": fields.flag}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Make a handler that drains."""
    for needed in ("socket", "servers"):
        if needed not in options:
            raise Invalid(f"{needed}: expected it, but it is missing")
    made = Haproxy(sockets=options["socket"], servers=options["servers"], waits=options.get("wait", True))
    return [Declared(does=made)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Haproxy:
    """Drains servers, and makes them ready again, in one load balancer or several."""

    sockets: Sequence[str]
    servers: Sequence[str]
    waits: bool

    async def prepare(self, task: Task) -> Outcome:
        """Drain, and wait for the sessions to end while there is time."""
        refusal = await self._set(task, "drain")
        if refusal is not None or not self.waits:
            return refusal or Ready()
        return await self._emptied(task)

    async def recover(self, task: Task) -> Outcome:
        """Let new sessions in again."""
        return await self._set(task, "ready") or Ready()

    def describe(self, side: Side) -> str:
        """Say what it would ask for."""
        what = f"{', '.join(self.servers)} in HAProxy at {', '.join(self.sockets)}"
        if side is Side.RECOVER:
            return f"makes {what} ready"
        return f"drains {what}" + (" and waits for sessions to end, while there is time" * self.waits)

    def problems(self) -> Sequence[str]:
        """Say which sockets are not there."""
        missing = [each for each in self.sockets if each.startswith("/") and not Path(each).exists()]
        return [
            f"{each} does not exist: `stats socket {each} level admin` in haproxy.cfg" for each in missing
        ]

    async def _set(self, task: Task, state: str) -> Outcome | None:
        """Put all servers in a state, also where another stands against it; returns the worst of that."""
        servers = filled(self.servers, facts_of(task))
        told = await asyncio.gather(*(_put(socket, servers, state) for socket in self.sockets))
        against = [each for each in told if each is not None]
        return next((each for each in against if isinstance(each, Never)), None) or next(iter(against), None)

    async def _emptied(self, task: Task) -> Outcome:
        while True:
            try:
                sessions = await self._sessions(task)
            except OSError as error:
                return Again(f"HAProxy does not answer: {error.strerror or 'it takes too long'}")
            if not sessions:
                return Ready("no session is left")
            left = task.seconds_left()
            if left is not None and left <= RESERVE_SECONDS:
                return Ready(f"{sessions} sessions are left, and no time")
            await asyncio.sleep(LOOK_EVERY)

    async def _sessions(self, task: Task) -> int:
        wanted = filled(self.servers, facts_of(task))
        found = 0
        for socket in self.sockets:
            known = await _servers_at(socket)
            found += sum(int(known[each]["scur"] or 0) for each in wanted if each in known)
        return found


async def _put(socket: str, servers: Sequence[str], state: str) -> Outcome | None:
    """Put servers in a state in one balancer; returns what stands against the first that cannot be.

    One in maintenance was put there by somebody, gets no sessions, and stays as it is.
    """
    refusals: list[Outcome] = []
    try:
        kept = {name for name, row in (await _servers_at(socket)).items() if row.get("status") == MAINTENANCE}
        for server in servers:
            if server not in kept and (said := await _ask(socket, f"set server {server} state {state}")):
                refusals.append(Never(f"HAProxy at {socket}: {said}"))
    except OSError as error:
        return Again(f"HAProxy at {socket} does not answer: {error.strerror or 'it takes too long'}")
    return refusals[0] if refusals else None


async def _servers_at(socket: str) -> dict[str, dict[str, str]]:
    """Tell of all servers, by BACKEND/SERVER."""
    rows = csv.DictReader((await _ask(socket, "show stat")).lstrip("# ").splitlines())
    return {f"{row['pxname']}/{row['svname']}": row for row in rows}


async def _ask(socket: str, command: str) -> str:
    async with asyncio.timeout(ANSWER_SECONDS):
        if socket.startswith("/"):
            if not hasattr(asyncio, "open_unix_connection"):
                raise OSError(0, "this system has no such sockets: use HOST:PORT")
            reader, writer = await asyncio.open_unix_connection(socket)
        else:
            host, _, port = socket.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(f"{command}\n".encode())
            await writer.drain()
            return (await reader.read(-1)).decode(errors="replace").strip()
        finally:
            writer.close()
