"""Every fault of the metadata endpoint, as a guest sees it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

from forewarn.clock import monotonic
from tests.helpers.programs.process import Guest, until
from tests.helpers.service.rehearsals import SPEED, all_at_once, one_machine, rehearsing

GuestOf: TypeAlias = Callable[[str], Guest]


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with rehearsing(tmp_path_factory.mktemp("rehearsal"), all_at_once()) as urls:
        yield urls


@contextmanager
def scenario_guest(folder: Path, order: str, fault: str) -> Iterator[Guest]:
    """Yield the guest of a machine. The scenario begins with its first poll."""
    with rehearsing(folder, one_machine(order, fault)) as urls:
        guest = Guest(urls["m"])
        with guest.client:
            yield guest


@pytest.fixture
def guest(endpoints: dict[str, str]) -> Iterator[GuestOf]:
    """Return the guest of the machine with this kind of fault."""
    with ExitStack() as stack:

        def of(kind: str) -> Guest:
            made = Guest(endpoints[f"m-{kind}"])
            stack.enter_context(made.client)
            return made

        yield of


def test_only_the_first_call_is_slow(guest: GuestOf) -> None:
    slow = guest("slow")
    began = monotonic()
    assert slow.document()["Events"] == []
    took = monotonic() - began
    assert took > 60 / SPEED * 0.9
    until(lambda: seconds_to_answer(slow) < took, what="an answer that is not slow")


def seconds_to_answer(guest: Guest) -> float:
    began = monotonic()
    guest.document()
    return monotonic() - began


def test_a_hanging_endpoint_closes_the_connection_without_an_answer(guest: GuestOf) -> None:
    hanging = guest("hang")

    def answer() -> bool:
        try:
            return hanging.poll().status_code == 200
        except httpx.RemoteProtocolError:
            return False

    until(answer, what="the endpoint to answer again")


@pytest.mark.parametrize(("kind", "retry"), [("429", "1"), ("500", None)])
def test_an_error_fault_affects_polls_and_approvals(guest: GuestOf, kind: str, retry: str | None) -> None:
    refused = guest(kind)
    for answer in (refused.poll(), refused.approve("602D9444-D2CD-49C7-8624-8643E7171297")):
        assert answer.status_code == int(kind)
        assert answer.headers.get("Retry-After") == retry
        assert "error" in answer.json()


def test_a_fault_may_affect_a_number_of_calls(guest: GuestOf) -> None:
    unlucky = guest("503")
    assert [unlucky.poll().status_code for _ in range(3)] == [503, 503, 200]


def test_an_answer_may_be_empty(guest: GuestOf) -> None:
    answer = guest("empty").poll()
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_document_may_be_labelled_as_plain_text(guest: GuestOf) -> None:
    answer = guest("text").poll()
    assert answer.headers["Content-Type"] == "text/plain"
    assert answer.json()["Events"] == []


def test_an_event_may_vanish_before_it_starts(tmp_path: Path) -> None:
    with scenario_guest(tmp_path, "freeze", 'at = "3m"\nfault = { kind = "vanished" }') as guest:
        seen = until(lambda: (found := guest.document())["Events"] and found, what="the event to be seen")
        gone = until(lambda: not (found := guest.document())["Events"] and found, what="it to vanish")
    assert seen["Events"][0]["EventStatus"] == "Scheduled"
    assert gone["DocumentIncarnation"] > seen["DocumentIncarnation"]


def test_an_event_may_begin_as_started(tmp_path: Path) -> None:
    with scenario_guest(tmp_path, "evict", 'fault = { kind = "born-started" }') as guest:
        (event,) = until(lambda: guest.document()["Events"], what="the event to be seen")
    assert (event["EventStatus"], event["NotBefore"]) == ("Started", "")


def test_a_notice_may_be_shorter_than_promised(tmp_path: Path) -> None:
    with scenario_guest(tmp_path, "freeze", 'fault = { kind = "short-notice", notice = "10m" }') as guest:
        first = until(lambda: (answer := guest.poll()).json()["Events"] and answer, what="the event")
    (event,) = first.json()["Events"]
    left = parsedate_to_datetime(event["NotBefore"]) - parsedate_to_datetime(first.headers["Date"])
    assert event["EventStatus"] == "Scheduled"
    # The header has whole seconds.
    assert left <= timedelta(minutes=10, seconds=1)


def test_an_incarnation_may_restart(tmp_path: Path) -> None:
    with scenario_guest(tmp_path, "freeze", 'at = "3m"\nfault = { kind = "incarnation-restart" }') as guest:
        until(lambda: guest.document()["DocumentIncarnation"] > 1, what="the incarnation to move")
        again = until(
            lambda: (found := guest.document())["DocumentIncarnation"] == 1 and found,
            what="the incarnation to restart",
        )
        assert len(again["Events"]) == 1
        tag = guest.poll().headers["ETag"]
        assert guest.poll(If_None_Match=tag).status_code == 304


def test_a_held_request_meets_a_later_fault(tmp_path: Path) -> None:
    with scenario_guest(tmp_path, "freeze", 'at = "5m"\nfault = { kind = "500" }') as guest:
        first = until(lambda: (answer := guest.poll()).json()["Events"] and answer, what="the event")
        # The wait lasts until after the fault begins. The document itself changes even later.
        assert guest.poll(Prefer="wait=60", If_None_Match=first.headers["ETag"]).status_code == 500


def test_other_requests_are_passed_on(guest: GuestOf) -> None:
    refused = guest("500")
    query = {"api-version": "2021-02-01", "format": "text"}
    answer = refused.client.get("/metadata/instance/compute/name", params=query, headers={"Metadata": "true"})
    assert answer.text == "m-500"
