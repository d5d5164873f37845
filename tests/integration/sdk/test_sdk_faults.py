"""Both guest clients against every fault of a rehearsal."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarn import Document, EndpointUnavailable
from tests.helpers.programs.guests import BOTH, Time, awaited, blocking
from tests.helpers.service.rehearsals import all_at_once, one_machine, rehearsing

Connect = Callable[..., Any]


@pytest.fixture(scope="module", params=["GuestClient", "AsyncGuestClient"])
def meeting(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Connect, dict[str, str]]]:
    """Yield a rehearsal for each client: some faults affect only the first calls."""
    connect = {"GuestClient": blocking, "AsyncGuestClient": awaited}[request.param]
    with rehearsing(tmp_path_factory.mktemp("rehearsal"), all_at_once()) as urls:
        yield connect, urls


Meeting = tuple[Connect, dict[str, str]]


def test_a_slow_first_answer_is_awaited(meeting: Meeting) -> None:
    connect, urls = meeting
    with connect(urls["m-slow"], persistence=0) as client:
        assert client.events().events == ()


def test_an_endpoint_that_hangs_is_retried(meeting: Meeting) -> None:
    connect, urls = meeting
    with connect(urls["m-hang"], time=Time()) as client:
        assert client.events().events == ()


@pytest.mark.parametrize("kind", ["429", "500"])
def test_a_lasting_error_is_raised(meeting: Meeting, kind: str) -> None:
    connect, urls = meeting
    time = Time()
    with connect(urls[f"m-{kind}"], time=time, persistence=10) as client:
        with pytest.raises(EndpointUnavailable, match=kind):
            client.events()
        with pytest.raises(EndpointUnavailable, match=kind):
            client.approve("602D9444-D2CD-49C7-8624-8643E7171297")
    assert time.pauses == [1, 2, 4, 1, 2, 4]


def test_a_temporary_error_is_retried(meeting: Meeting) -> None:
    connect, urls = meeting
    time = Time()
    with connect(urls["m-503"], time=time) as client:
        assert client.events().events == ()
    assert time.pauses == [1, 2]


def test_an_empty_answer_is_retried(meeting: Meeting) -> None:
    connect, urls = meeting
    with (
        connect(urls["m-empty"], time=Time()) as client,
        pytest.raises(EndpointUnavailable, match="an empty answer"),
    ):
        client.events()


def test_a_document_as_plain_text_is_read(meeting: Meeting) -> None:
    connect, urls = meeting
    with connect(urls["m-text"]) as client:
        assert client.events().events == ()


def seen(connect: Connect, folder: Path, order: str, fault: str, documents: int) -> list[Document]:
    """Watch the only machine of a rehearsal without long polls; a held request meets no fault."""
    with rehearsing(folder, one_machine(order, fault)) as urls, connect(urls["m"]) as client:
        watching = client.watch(wait=0)
        return [next(watching) for _ in range(documents)]


@BOTH
def test_a_watch_sees_an_event_vanish(connect: Connect, tmp_path: Path) -> None:
    documents = seen(connect, tmp_path, "freeze", 'at = "3m"\nfault = { kind = "vanished" }', 3)
    assert [len(document.events) for document in documents] == [0, 1, 0]


@BOTH
def test_an_event_may_begin_as_started(connect: Connect, tmp_path: Path) -> None:
    _, document = seen(connect, tmp_path, "evict", 'fault = { kind = "born-started" }', 2)
    (event,) = document.events
    assert (event.status, event.not_before) == ("Started", None)


@BOTH
def test_a_restarted_incarnation_is_a_change(connect: Connect, tmp_path: Path) -> None:
    fault = 'at = "3m"\nfault = { kind = "incarnation-restart" }'
    documents = seen(connect, tmp_path, "freeze", fault, 3)
    assert [document.incarnation for document in documents] == [1, 2, 1]
    assert documents[1].events == documents[2].events
