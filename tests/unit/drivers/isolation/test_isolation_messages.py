"""Messages between the server and drivers' processes arrive complete, and only answers are unpickled."""

import os
import pickle
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.control import driver
from forewarn.control.driver import Cancelled, Done, Failed, NotBegun, Running, TooLate, Unknown
from forewarn.core.basic_types import GroupKind, GroupName, HostName, MachineId, MachineName, Mobility
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundHost, FoundMachine
from forewarn.drivers.isolation import messages
from forewarn.drivers.isolation.isolated_driver import (
    OPTIONAL_FLAGS,
    OPTIONAL_METHODS,
    OPTIONAL_NOTIFICATIONS,
)
from forewarn.drivers.isolation.messages import MessageTooLong, Received, framed, packed, read_answer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOST = HostName("kvm04")
FOUND = FoundFleet(
    machines=(
        FoundMachine(
            vm_id=MachineId("0a"),
            name=MachineName("web-0"),
            host=HOST,
            running=True,
            mobility=Mobility.LIVE,
            tags={"role": "front"},
        ),
    ),
    hosts=(FoundHost(name=HOST, labels={"rack": "1"}),),
    groups=(FoundGroup(name=GroupName("web"), kind=GroupKind.SCALE_SET),),
    unreachable={HostName("kvm05"): "no route"},
)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


class Runs:
    """A malicious answer, such as a process with corrupt memory may send."""

    def __reduce__(self) -> Any:
        return os.system, ("true",)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "no route to kvm04",
        Done(host=HOST, impact=1.5, note="slowly"),
        Running(NOW, mark="job-7", progress=0.5),
        Failed("no room", again=True),
        Unknown("silent", NOW + timedelta(seconds=2)),
        NotBegun(),
        Cancelled(),
        TooLate(),
        FOUND,
    ],
)
def test_an_answer_survives_pickling(answer: object) -> None:
    assert read_answer(packed(answer)) == answer


@given(st.from_type(FoundFleet) | st.from_type(Running) | st.from_type(Done) | st.from_type(Unknown))
def test_every_value_of_an_answer_survives_pickling(answer: object) -> None:
    sent = plain(answer)
    assert repr(read_answer(packed(sent))) == repr(sent)  # NaN does not equal itself


def plain(value: Any) -> Any:
    """Return a value with plain dicts, because Hypothesis creates other mappings too."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{each.name: plain(getattr(value, each.name)) for each in fields(value)})
    return value


@pytest.mark.parametrize("body", [packed(Runs()), packed(pickle.loads), packed((Runs(),))])
def test_unpickling_calls_nothing_outside_answers(body: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is not allowed in an answer"):
        read_answer(body)


def test_messages_of_the_process_contain_no_classes(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    theirs.sendall(framed(("answer", 1, Done())))
    with pytest.raises(pickle.UnpicklingError, match="Done is not allowed in an answer"):
        Received(ours).next()


@pytest.mark.parametrize("message", ["text", (), (7, "answer"), None])
def test_an_invalid_message_is_refused(ends: tuple[socket.socket, socket.socket], message: Any) -> None:
    ours, theirs = ends
    theirs.sendall(framed(message))
    with pytest.raises(pickle.UnpicklingError, match="expected a message"):
        Received(ours).next()


def test_a_partial_message_is_kept_until_the_rest_arrives(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    ours.setblocking(False)
    received, frame = Received(ours), framed(("wake", "web-0"))
    for part in (frame[:2], frame[2:9]):
        theirs.sendall(part)
        with pytest.raises(BlockingIOError):
            received.next()
    theirs.sendall(frame[9:] + framed(("pong",)))
    assert [received.next(), received.next()] == [("wake", "web-0"), ("pong",)]
    theirs.sendall(frame[:9])
    theirs.close()
    assert received.next() is None


def test_both_sides_limit_the_length_of_messages(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = ends
    monkeypatch.setattr(messages, "LONGEST", 100)
    with pytest.raises(MessageTooLong):
        framed(("log", "x" * 101))
    theirs.sendall(struct.pack("!I", 101))
    with pytest.raises(MessageTooLong):
        Received(ours).next()


def test_isolated_driver_lists_every_optional_member() -> None:
    """A new protocol in control/driver.py must be listed in isolated_driver.py or excluded here."""
    here_alone = {"trusted_text", "isolated"}  # read in the server only
    protocols = (each for each in vars(driver).values() if getattr(each, "_is_protocol", False))
    members = {name for each in protocols if each is not driver.Driver for name in _members(each)}
    asked = {"limits", "begin", "check", "cancel"}
    offered = {*OPTIONAL_METHODS, *OPTIONAL_NOTIFICATIONS, *OPTIONAL_FLAGS}
    assert members - asked - here_alone == offered


def _members(protocol: type) -> set[str]:
    own = {name for name in vars(protocol) if not name.startswith("_")}
    return own | {name for name in protocol.__annotations__ if not name.startswith("_")}
