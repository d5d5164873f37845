"""Connections to libvirt: opened within a timeout, closed completely, with one thread per host."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import HostName
from forewarn.core.model.host import Host
from forewarn.drivers.libvirt import connections
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.library import NoLibvirtAnswer
from forewarn.drivers.libvirt.options import LibvirtOptions

KVM = Host(name=HostName("kvm04"), uri="test://kvm04")
PATIENCE = 20.0


class LibvirtError(Exception):
    """The library's error."""


class Connection:
    """A connection of the library."""

    def __init__(self) -> None:
        self.alive = True
        self.callbacks: set[int] = set()
        self.let_go = threading.Event()

    def isAlive(self) -> bool:  # noqa: N802 - libvirt's name
        return self.alive

    def setKeepAlive(self, *_: int) -> None:  # noqa: N802
        pass

    def domainEventRegisterAny(self, *_: Any) -> int:  # noqa: N802
        self.callbacks.add(len(self.callbacks))
        return len(self.callbacks) - 1

    def domainEventDeregisterAny(self, callback: int) -> None:  # noqa: N802
        self.callbacks.discard(callback)
        if not self.callbacks:
            self.let_go.set()
        if not self.alive:
            raise LibvirtError("it is over")


class Library:
    """The part of libvirt-python that connections use."""

    libvirtError = LibvirtError  # noqa: N815
    VIR_DOMAIN_EVENT_ID_LIFECYCLE = 0
    VIR_DOMAIN_EVENT_ID_REBOOT = 1
    VIR_DOMAIN_EVENT_ID_JOB_COMPLETED = 2
    VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE = 3

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.tries = 0
        self.opened: list[Connection] = []

    def open(self, uri: str) -> Connection:
        self.tries += 1
        assert self.answers.wait(PATIENCE)
        if uri == "test://nowhere":
            raise LibvirtError("no such host")
        self.opened.append(Connection())
        return self.opened[-1]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    made = Library()
    monkeypatch.setattr(connections, "load", lambda: made)
    monkeypatch.setattr(connections, "start_event_loop", lambda _: None)
    yield made
    made.answers.set()


@contextmanager
def silent(library: Library) -> Iterator[None]:
    library.answers.clear()
    try:
        yield
    finally:
        library.answers.set()


def made(*, connect_for: float = PATIENCE) -> Connections:
    options = LibvirtOptions(connect_for=timedelta(seconds=connect_for))
    return Connections(options, wake=lambda _: None)


@pytest.mark.parametrize("another", [False, True])
def test_a_hanging_host_is_tried_once_and_times_out(library: Library, another: bool) -> None:
    mine = made(connect_for=0.05)
    ask = mine.open_another if another else mine.get
    with silent(library):
        for _ in range(5):
            with pytest.raises(NoLibvirtAnswer, match="kvm04 cannot be reached: no answer within"):
                ask(KVM)
        assert library.tries == 1


def test_a_connection_for_a_long_call_is_not_shared(library: Library) -> None:
    mine = made()
    found = [mine.get(KVM), mine.open_another(KVM), mine.open_another(KVM), mine.get(KVM)]
    one, two, three, again = (each.connection for each in found)
    assert one is again
    assert len({id(each) for each in (one, two, three)}) == 3
    assert [bool(each.callbacks) for each in (one, two, three)] == [True, False, False]


def test_concurrent_long_calls_get_a_connection_each(library: Library) -> None:
    mine, found = made(), list[Any]()
    with silent(library):
        threads = [
            threading.Thread(target=lambda: found.append(mine.open_another(KVM).connection)) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len({id(each) for each in found}) == 3


def test_the_next_call_uses_a_connection_that_opened_too_late(library: Library) -> None:
    mine = made(connect_for=0.05)
    with silent(library), pytest.raises(NoLibvirtAnswer):
        mine.open_another(KVM)
    later = made_later(mine, library)
    assert later is library.opened[0]


def made_later(mine: Connections, library: Library) -> Any:
    """Retry until the late connection is open."""
    for _ in range(1000):
        try:
            return mine.open_another(KVM).connection
        except NoLibvirtAnswer:
            threading.Event().wait(0.01)
    raise AssertionError(library.tries)


def test_a_lost_connection_keeps_no_callbacks(library: Library) -> None:
    mine = made()
    mine.get(KVM)
    (lost,) = library.opened
    lost.alive = False
    assert mine.get(KVM).connection is library.opened[1]
    assert lost.callbacks == set()


def test_a_host_with_a_new_uri_keeps_no_callbacks(library: Library) -> None:
    mine = made()
    mine.get(KVM)
    mine.get(Host(name=KVM.name, uri="test://other"))
    assert library.opened[0].let_go.wait(PATIENCE)


def test_the_next_call_tries_a_refusing_host_again(library: Library) -> None:
    mine = made()
    nowhere = Host(name=KVM.name, uri="test://nowhere")
    for _ in range(2):
        with pytest.raises(NoLibvirtAnswer, match=r"no such host \(test://nowhere\)"):
            mine.open_another(nowhere)
    assert library.tries == 2
