"""`haproxy`: drain this machine's servers in HAProxy over its runtime socket, and make them ready again.

A drained server gets no new sessions. The handler waits for its existing sessions to end, as time permits.
"""

import asyncio
import csv
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.agent.facts import checked_template, facts_of, filled
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side, Task
from forewarn.core.errors import Invalid
from forewarn.platform import system
from forewarn.wire import fields
from forewarn.wire.texts import shown

STATES = "show servers state"
ANSWER_SECONDS = 5.0
# The timeout of config checks, which also run when the agent starts.
CHECK_SECONDS = 2.0
# The most server names in a message.
MOST_NAMES = 10
LOOK_EVERY = 0.5
# The time before the start of the event that is left for the next handlers.
RESERVE_SECONDS = 5.0
# Bits of srv_admin_state in HAProxy's management guide: in maintenance by command or by config, and drained
# by command. `show stat` does not show that a server that is down is also drained.
MAINTENANCE = 0x01 | 0x04
DRAINED = 0x08
# Separates a server, which has no spaces in its name, from its socket in the journal.
AT = " at "


def _socket(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not (value.startswith("/") or ":" in value):
        raise Invalid(f"expected the path of HAProxy's stats socket, or HOST:PORT, got {shown(value)}")
    return value


def _server(value: object) -> str:
    if not isinstance(value, str) or not _is_server(value):
        raise Invalid(f'expected BACKEND/SERVER, as "web/${{machine}}", got {shown(value)}')
    return checked_template(str(value))


def _is_server(text: str) -> bool:
    backend, _, name = text.partition("/")
    return bool(backend and name) and not any(
        each.isspace() or each in ";\\" or not each.isprintable() for each in text
    )


def _servers(value: object) -> tuple[str, ...]:
    found = fields.sequence(value)
    if not found:
        raise Invalid("expected at least one BACKEND/SERVER, got an empty list")
    return tuple(_server(each) for each in found)


def _sockets(value: object) -> tuple[str, ...]:
    return tuple(_socket(each) for each in (value if isinstance(value, list) and value else [value]))


READERS = {"socket": _sockets, "servers": _servers, "wait": fields.flag}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Create the handler."""
    fields.require(options, {"socket": "it", "servers": "it"}, "")
    made = Haproxy(sockets=options["socket"], servers=options["servers"], waits=options.get("wait", True))
    return [Declared(does=made)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Haproxy:
    """Drains servers in one or more load balancers, and makes them ready again."""

    sockets: Sequence[str]
    servers: Sequence[str]
    waits: bool

    async def prepare(self, task: Task) -> Outcome:
        """Drain the servers and wait for their sessions to end, as time permits."""
        servers = filled(self.servers, facts_of(task))
        if odd := next((each for each in servers if not _is_server(each)), None):
            return Never(f"{shown(odd)} is not a valid server name")
        # Leave servers alone that a person has drained or put in maintenance.
        out = MAINTENANCE | DRAINED
        refusal = await _all(_put(each, servers, "drain", unless=out, owe=task.owe) for each in self.sockets)
        if refusal is not None or not self.waits:
            return refusal or Ready()
        return await self._emptied(servers, task)

    async def recover(self, task: Task) -> Outcome:
        """Make the servers ready that this handler has drained."""
        owed: dict[str, list[str]] = {}
        for thing in task.owed:
            server, _, socket = thing.partition(AT)
            owed.setdefault(socket, []).append(server)
        # Leave servers alone that a person has put in maintenance in the meantime.
        asked = (_put(socket, servers, "ready", unless=MAINTENANCE) for socket, servers in owed.items())
        return await _all(asked) or Ready()

    def describe(self, side: Side) -> str:
        """Describe the change in HAProxy."""
        what = f"{', '.join(self.servers)} in HAProxy at {', '.join(self.sockets)}"
        if side is Side.RECOVER:
            return f"makes {what} ready if it has drained them"
        return f"drains {what}" + (" and waits for sessions to end, as time permits" * self.waits)

    def problems(self) -> Sequence[str]:
        """Return the sockets that do not work and the servers that HAProxy does not have."""
        return [problem for socket in self.sockets for problem in self._problems_at(socket)]

    def _problems_at(self, socket: str) -> Iterable[str]:
        if socket.startswith("/") and not Path(socket).exists():
            yield f"{socket} does not exist: add `stats socket {socket} level admin` to haproxy.cfg"
            return
        try:
            known = _states_in(system.ask_and_read(socket, f"{STATES}\n".encode(), CHECK_SECONDS).decode())
        except (OSError, ValueError, KeyError) as error:
            yield f"HAProxy at {socket} does not answer: {getattr(error, 'strerror', None) or error}"
            return
        for server in self.servers:
            # A placeholder matches any name.
            pattern = re.compile(
                "".join(".+" if part.startswith("$") else re.escape(part) for part in _parts(server))
            )
            if not any(pattern.fullmatch(each) for each in known):
                names = ", ".join(sorted(known)[:MOST_NAMES]) or "none"
                yield f"HAProxy at {socket} has no server {server}; it has {names}"

    async def _emptied(self, servers: Sequence[str], task: Task) -> Outcome:
        while True:
            try:
                sessions = sum([await _sessions(socket, servers) for socket in self.sockets])
            except OSError as error:
                return Again(f"HAProxy does not answer: {error.strerror or 'it takes too long'}")
            if not sessions:
                return Ready("no session is left")
            left = task.seconds_left()
            if left is not None and left <= RESERVE_SECONDS:
                return Ready(f"{sessions} sessions have not ended, and there is no time left")
            await asyncio.sleep(LOOK_EVERY)


async def _all(asked: Iterable[Awaitable[Outcome | None]]) -> Outcome | None:
    """Run all requests, also if one fails; return the worst failure."""
    failures = [each for each in await asyncio.gather(*asked) if each is not None]
    return next((each for each in failures if isinstance(each, Never)), None) or next(iter(failures), None)


async def _put(
    socket: str,
    servers: Sequence[str],
    state: str,
    *,
    unless: int,
    owe: Callable[[str], None] = lambda thing: None,
) -> Outcome | None:
    """Change the state of servers in one load balancer; return the first failure."""
    refusals: list[Outcome] = []
    try:
        known = _states_in(await _ask(socket, STATES))
        for server in servers:
            if known.get(server, 0) & unless:
                continue
            owe(f"{server}{AT}{socket}")
            if answer := await _ask(socket, f"set server {server} state {state}"):
                refusals.append(Never(f"HAProxy at {socket}: {answer}"))
    except OSError as error:
        return Again(f"HAProxy at {socket} does not answer: {error.strerror or 'it takes too long'}")
    return refusals[0] if refusals else None


def _parts(template: str) -> list[str]:
    """Split a template into placeholders, which begin with $, and other text."""
    return re.split(r"(\$\{[^{}]*\})", template)


def _states_in(answer: str) -> dict[str, int]:
    """Parse the administrative states of servers, by BACKEND/SERVER."""
    _, _, table = answer.strip().partition("# ")
    rows = csv.DictReader(table.splitlines(), delimiter=" ")
    return {f"{row['be_name']}/{row['srv_name']}": int(row["srv_admin_state"]) for row in rows}


async def _sessions(socket: str, servers: Sequence[str]) -> int:
    """Count the sessions of servers in one load balancer."""
    rows = csv.DictReader((await _ask(socket, "show stat")).lstrip("# ").splitlines())
    return sum(int(row["scur"] or 0) for row in rows if f"{row['pxname']}/{row['svname']}" in servers)


async def _ask(socket: str, command: str) -> str:
    async with asyncio.timeout(ANSWER_SECONDS):
        if socket.startswith("/"):
            reader, writer = await system.connect_locally(socket)
        else:
            host, _, port = socket.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(f"{command}\n".encode())
            await writer.drain()
            return (await reader.read(-1)).decode(errors="replace").strip()
        finally:
            writer.close()
