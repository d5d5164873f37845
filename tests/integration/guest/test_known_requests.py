"""The request cache changes no byte of any answer, whatever happens."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

from hypothesis import example, given, settings
from hypothesis import strategies as st

from forewarn.clock import ManualClock
from forewarn.core.basic_types import EventType, GroupName, MachineId, MachineName
from forewarn.core.feed import Delta
from forewarn.core.guests.document import entity_tag
from forewarn.core.guests.document import tag as document_tag
from forewarn.core.model.event import Resource
from forewarn.guest.board.board import Board
from forewarn.guest.http.connection import Connection
from forewarn.guest.server import GuestServer
from forewarn.guest.settings import EndpointSettings, GuestCommands, Limits
from tests.helpers.service.counts import tries
from tests.integration.guest.guest_face import START, event, group, machine, request

MACHINES = ("web-0", "web-1", "db-0")
GROUPS = ("web", "db")
TARGETS = (
    "/metadata/scheduledevents?api-version=2020-07-01",
    "/metadata/scheduledevents?api-version=2017-08-01",
    "/metadata/scheduledevents?api-version=1999-01-01",
    "/metadata/elsewhere",
)
# Values of If-None-Match: `{now}` and `{then}` are the current and an earlier tag.
HAVING = (None, '"{now}"', "{now}", 'W/"{now}"', '"{then}"', '"{then}", "{now}"', "*", '"other"')

asks = st.tuples(
    st.just("ask"),
    st.sampled_from(MACHINES),
    st.sampled_from(TARGETS),
    st.sampled_from(HAVING),
    st.booleans(),
)
changes = st.tuples(st.just("change"), st.sampled_from(GROUPS), st.integers(0, 2))
moves = st.tuples(st.just("move"), st.sampled_from(MACHINES), st.sampled_from((*GROUPS, None)))
# Two machines swap addresses, so the bytes that one has sent before now come from the other.
swaps = st.tuples(st.just("swap"), st.sampled_from(MACHINES), st.sampled_from(MACHINES))
passes = st.tuples(st.just("pass"), st.sampled_from((0.0, 0.3, 2.0)))
# Clients send the same bytes repeatedly.
repeats = st.tuples(st.just("repeat"), st.sampled_from(MACHINES))
happenings = st.one_of(asks, repeats, repeats, repeats, changes, moves, swaps, passes)
# The size of two requests, so that nearly every new entry evicts another.
LITTLE = 1400

POLL, OLD_POLL = TARGETS[:2]
# Cases that are rare by chance, each with a cached request.
ANOTHER_CALLER = [
    ("ask", "web-0", POLL, None, True),
    ("change", "db", 1),
    ("swap", "web-0", "db-0"),
    ("repeat", "web-0"),
    ("repeat", "web-0"),
    ("swap", "web-0", "db-0"),
    ("repeat", "web-0"),
]
TOO_OFTEN = [("ask", "web-0", POLL, None, True), *[("repeat", "web-0")] * 12]
ANY_DOCUMENT = [
    ("ask", "web-0", POLL, "*", True),
    ("repeat", "web-0"),
    ("change", "web", 1),
    ("repeat", "web-0"),
]
# The old version has the type of only one of the two events.
NEWS = [("change", "web", 2), ("pass", 2.0), ("repeat", "web-0")]
NEWS_IN_AN_OLD_VERSION = [("ask", "web-0", OLD_POLL, None, True), *NEWS]
NEWS_IN_A_NEW_VERSION = [("ask", "web-0", POLL, None, True), *NEWS]


@dataclass
class Wire(asyncio.Transport):
    """A transport that records what is written."""

    address: str
    written: list[bytes] = field(default_factory=list)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.address, 1)

    def write(self, data: Any) -> None:
        self.written.append(data)

    def write_eof(self) -> None:
        self.written.append(b"<end>")

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.written.append(b"<closed>")

    abort = close


class Endpoint:
    """An endpoint with a connection for each machine, with or without a request cache."""

    def __init__(self, clock: ManualClock, *, known_bytes: int) -> None:
        self.board = Board(lineage="LINEAGE")
        self.real = 1000.0
        self._callers = {name: name for name in MACHINES}  # the initial owners of the addresses
        self._machines = {name: machine(name, group=name[:-2], address=_address(name)) for name in MACHINES}
        self._groups = {name: group(name) for name in GROUPS}
        self._number = 0
        self._show(groups=tuple(self._groups.values()), machines=tuple(self._machines.values()))
        limits = Limits(known_bytes=known_bytes)
        self.server = GuestServer(
            self.board,
            cast(GuestCommands, None),  # all groups are ready, so no poll needs a command
            clock=clock,
            settings=EndpointSettings(rate=5, limits=limits),
            new_id=lambda: "ID",
        )
        self.server.connections.handler.times.time = lambda: self.real
        self.known = self.server.connections.known
        self._then = dict.fromkeys(MACHINES, "none")
        self._last = dict.fromkeys(MACHINES, request("GET", TARGETS[0], "Metadata: true"))
        self._wires: dict[str, tuple[Connection, Wire]] = {}

    def ask(self, name: str, target: str, having: str | None, metadata: bool) -> bytes:
        now, then = self._now(name), self._then[name]
        headers = [f"If-None-Match: {having.format(now=now, then=then)}"] if having else []
        if metadata:
            headers.append("Metadata: true")
        self._then[name] = now
        self._last[name] = request("GET", target, *headers)
        return self.repeat(name)

    def repeat(self, name: str) -> bytes:
        """Repeat the last request of a machine."""
        asked = self._last[name]
        connection, wire = self._wires.get(name) or self._connect(name)
        connection.data_received(bytes(bytearray(asked)))  # equal, but another object
        answer, wire.written = b"".join(wire.written), []  # the number of writes does not matter
        _check(answer, asked, now=self._now(name))
        if answer.endswith(b">"):
            connection.connection_lost(None)
            del self._wires[name]
        return answer

    def _now(self, name: str) -> str:
        """Recompute the tag of the document of the machine that calls from this address."""
        member = self.board.members.get(MachineId(f"id-of-{self._callers[name]}"))
        if member is None:
            return "none"
        of = member.group
        born = document_tag(of.name, born=of.document.born, lineage="LINEAGE")
        return entity_tag(of.document.incarnation, born)

    def change(self, name: str, events: int) -> None:
        before = self._groups[name]
        self._groups[name] = changed = replace(before, incarnation=before.incarnation + 1)
        kinds = (EventType.FREEZE, EventType.TERMINATE)  # the oldest version has the type of one of them
        listed = tuple(
            replace(
                event(kind, names=(f"{name}-0",), number=each + 1),
                group=GroupName(name),
                resources=(Resource(machine=MachineId(f"id-of-{name}-0"), name=MachineName(f"{name}-0")),),
            )
            for each, kind in enumerate(kinds[:events])
        )
        self._show(groups=(changed,), events={GroupName(name): listed})

    def move(self, name: str, to: str | None) -> None:
        if to is None:
            self._show(removed_machines=(MachineId(f"id-of-{name}"),))
        else:
            self._machines[name] = replace(self._machines[name], group=GroupName(to))
            self._show(machines=(self._machines[name],))

    def swap(self, one: str, other: str) -> None:
        """Swap the addresses of two machines; add them again if they were removed."""
        places = {caller: at for at, caller in self._callers.items()}
        self._callers[places[one]], self._callers[places[other]] = other, one
        for at, caller in self._callers.items():
            if caller in (one, other):
                self._machines[caller] = replace(self._machines[caller], address=_address(at))
        self._show(removed_machines=tuple(MachineId(f"id-of-{name}") for name in {one, other}))
        self._show(machines=tuple(self._machines[name] for name in dict.fromkeys((one, other))))

    def seen(self) -> tuple[object, ...]:
        """The recorded polls and sent events."""
        return (
            {member.machine.id: at for member, at in self.board.seen.items()},
            {each.name: at for each, at in self.board.polled.items()},
            {member.machine.id: member.connections for member in self.board.members.values()},
            self.board.sent,
            self.server.counters(),
        )

    def close(self) -> None:
        for connection, _ in self._wires.values():
            connection.connection_lost(None)

    def _connect(self, name: str) -> tuple[Connection, Wire]:
        wire = Wire(_address(name))
        connection = Connection(self.server.connections, self.board.network(""))
        connection.connection_made(wire)
        self._wires[name] = connection, wire
        return connection, wire

    def _show(self, **changed: Any) -> None:
        self._number += 1
        self.board.apply(Delta(number=self._number, events=changed.pop("events", {}), **changed))


def _check(answer: bytes, asked: bytes, *, now: str) -> None:
    """Check that an answer has the current document."""
    if answer.startswith(b"HTTP/1.1 304"):
        assert now.encode() in asked or b"If-None-Match: *" in asked
    if answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")):
        assert f'ETag: "{now}"\r\n'.encode() in answer


def _address(name: str) -> str:
    return f"10.0.0.{MACHINES.index(name) + 1}"


@given(st.lists(happenings, max_size=40))
@example(ANOTHER_CALLER)
@example(TOO_OFTEN)
@example(ANY_DOCUMENT)
@example(NEWS_IN_AN_OLD_VERSION)
@example(NEWS_IN_A_NEW_VERSION)
@settings(max_examples=tries(60, long=3000), deadline=None)
def test_the_request_cache_changes_no_byte_of_any_answer(history: list[tuple[Any, ...]]) -> None:
    async def play() -> None:
        clock = ManualClock(START)
        with_table = Endpoint(clock, known_bytes=1 << 20)
        without = Endpoint(clock, known_bytes=0)
        with_little = Endpoint(clock, known_bytes=LITTLE)
        all_of_them = (with_table, with_little, without)
        for what, *how in history:
            if what == "pass":
                clock.set(clock.now() + timedelta(seconds=how[0]))
                for each in all_of_them:
                    each.real += how[0]
                continue
            answers = {getattr(each, what)(*how) for each in all_of_them}
            assert len(answers) == 1
            assert with_little.known.size <= LITTLE
        assert with_table.seen() == with_little.seen() == without.seen()
        assert len(without.known) == 0
        for each in all_of_them:
            each.close()

    asyncio.run(play())
