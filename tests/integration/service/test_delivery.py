"""Targets of a project's webhooks: the address is checked on every delivery."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from forewarn.clock import SystemClock
from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.errors import LimitReached
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook, WebhookId
from forewarn.server.threads.webhook_delivery import (
    MOST_OF_A_PROJECT,
    MOST_OF_PROJECTS,
    NOT_PUBLIC,
    Delivery,
    Lookup,
    PublicOnly,
    SystemLookup,
)
from tests.helpers.programs.process import PATIENCE
from tests.helpers.programs.receiver import Receiver, receiving
from tests.helpers.service.harness import START, Ids

OWN = ProjectName("a")
RECORD = Record(number=7, at=START, kind=Kind.CLOCK_JUMPED)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


class Names:
    """A name server whose answers change: each lookup gets the next one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not answer:
            raise OSError("Name or service not known")
        return answer


def webhook(url: str, *, owner: ProjectName | None = OWN) -> Webhook:
    return Webhook(
        id=WebhookId("X"),
        number=1,
        url=url,
        project=OWN,
        owner=owner,
        kinds=frozenset(),
        secret=f"whsec_{'A' * 32}",
        by="anna",
        created_at=START,
        delivered=1,
    )


def called(wanted: Webhook, guard: Lookup | None, *, times: int = 1) -> list[str | None]:
    """Call a webhook; return the errors of each call."""

    async def calls() -> list[str | None]:
        delivery = Delivery(lineage="L", wall=SystemClock().now, new_id=Ids(), guard=guard)
        try:
            return [await delivery.send_test(wanted) for _ in range(times)]
        finally:
            await delivery.close()

    return asyncio.run(calls())


async def waiting(receiver: Receiver, count: int) -> None:
    """Wait until this many calls are unanswered."""
    async with asyncio.timeout(PATIENCE):
        while receiver.waiting < count:  # noqa: ASYNC110 - the receiver is on other threads
            await asyncio.sleep(0.001)


def named(receiver: Receiver, host: str = "hooks.example", scheme: str = "http") -> str:
    return f"{scheme}://{host}:{urlsplit(receiver.url).port}/hook?a=b"


def is_loopback(address: str) -> bool:
    return address == "127.0.0.1"


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::ffff:127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],  # one allowed address does not outweigh a forbidden one
        [],
    ],
)
def test_a_name_with_an_inside_address_is_not_called(receiver: Receiver, answer: list[str]) -> None:
    assert called(webhook(named(receiver)), PublicOnly(Names(answer))) == [NOT_PUBLIC]
    assert receiver.calls == []


def test_an_address_inside_is_not_called(receiver: Receiver) -> None:
    assert called(webhook(receiver.url), PublicOnly()) == [NOT_PUBLIC]
    assert called(webhook(named(receiver, host="localhost")), PublicOnly()) == [NOT_PUBLIC]
    assert called(webhook(named(receiver, host="[::ffff:127.0.0.1]")), PublicOnly()) == [NOT_PUBLIC]
    assert receiver.calls == []


def test_the_checked_address_is_the_one_that_is_called(receiver: Receiver) -> None:
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    first, second = called(webhook(named(receiver)), PublicOnly(names, is_public=is_loopback), times=2)
    assert (first, second) == (None, NOT_PUBLIC)
    assert names.asked == ["hooks.example"] * 2
    ((headers, _),) = receiver.calls
    assert headers["host"] == urlsplit(named(receiver)).netloc


def test_an_unreachable_address_is_skipped(receiver: Receiver) -> None:
    # The second address of this machine refuses connections.
    names = Names(["127.0.0.2", "127.0.0.1"])
    assert called(webhook(named(receiver)), names) == [None]


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.answer = lambda count: 302
    names = Names(["127.0.0.1"])
    (error,) = called(webhook(named(receiver)), names)
    assert error == "it answered 302; redirects are not followed"
    assert len(receiver.calls) == 1


def test_an_operator_may_allow_all_targets_for_projects(receiver: Receiver) -> None:
    assert called(webhook(receiver.url), None) == [None]


def test_operators_may_call_all_targets(receiver: Receiver) -> None:
    assert called(webhook(receiver.url, owner=None), PublicOnly()) == [None]


@pytest.mark.parametrize(("host", "trusted"), [("hooks.example", True), ("others.example", False)])
def test_the_certificate_must_match_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, trusted: bool
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=x")
    names = ("-addext", "subjectAltName=DNS:hooks.example")
    subprocess.run(["openssl", "req", "-x509", *made, *names], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with receiving(tls=context) as receiver:
        wanted = webhook(named(receiver, host=host, scheme="https"))
        (error,) = called(wanted, Names(["127.0.0.1"]))
    assert (error is None) == trusted
    assert trusted or "certificate" in str(error)


def test_a_project_with_hanging_receivers_leaves_connections_to_others(receiver: Receiver) -> None:
    receiver.released.clear()
    other = ProjectName("b")

    async def calls() -> list[str | None]:
        delivery = Delivery(lineage="L", wall=SystemClock().now, new_id=Ids(), timeout=PATIENCE, guard=None)
        own = webhook(receiver.url)
        sent = [asyncio.create_task(delivery.send(own, RECORD)) for _ in range(3 * MOST_OF_A_PROJECT)]
        await waiting(receiver, MOST_OF_A_PROJECT)
        for each in (other, None):
            sent.append(asyncio.create_task(delivery.send(webhook(receiver.url, owner=each), RECORD)))
        await waiting(receiver, MOST_OF_A_PROJECT + 2)
        with pytest.raises(LimitReached, match="try again"):
            await delivery.send_test(own)
        receiver.released.set()
        try:
            return await asyncio.gather(*sent)
        finally:
            await delivery.close()

    assert asyncio.run(calls()) == [None] * (3 * MOST_OF_A_PROJECT + 2)
    assert receiver.most_waiting == MOST_OF_A_PROJECT + 2


class Unanswered:
    """A name server that never answers, and counts its callers."""

    def __init__(self) -> None:
        self.asked = self.waiting = self.most_waiting = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.waiting -= 1
        return ()


def test_all_projects_together_leave_connections_to_operators(receiver: Receiver) -> None:
    names = Unanswered()
    projects = [ProjectName(f"p-{number}") for number in range(MOST_OF_PROJECTS)]

    async def calls() -> str | None:
        delivery = Delivery(lineage="L", wall=SystemClock().now, new_id=Ids(), timeout=PATIENCE, guard=names)
        try:
            async with asyncio.TaskGroup() as tasks:
                url = "http://hooks.example/"
                held = [
                    tasks.create_task(delivery.send(webhook(url, owner=each), RECORD))
                    for each in projects * 2
                ]
                answer = await delivery.send(webhook(receiver.url, owner=None), RECORD)
                assert names.waiting == MOST_OF_PROJECTS
                for each in held:
                    each.cancel()
                return answer
        finally:
            await delivery.close()

    assert asyncio.run(calls()) is None
    assert names.most_waiting == MOST_OF_PROJECTS


def test_a_wait_for_other_calls_does_not_count_against_the_receiver() -> None:
    names, own = Unanswered(), webhook("http://hooks.example/")

    async def calls() -> list[str | None]:
        delivery = Delivery(lineage="L", wall=SystemClock().now, new_id=Ids(), timeout=0.01, guard=names)
        try:
            return await asyncio.gather(*(delivery.send(own, RECORD) for _ in range(2 * MOST_OF_A_PROJECT)))
        finally:
            await delivery.close()

    # The second half waits longer than the timeout of a call, and is made anyway.
    assert asyncio.run(calls()) == ["no answer within 0.01 s"] * 2 * MOST_OF_A_PROJECT
    assert (names.asked, names.most_waiting) == (2 * MOST_OF_A_PROJECT, MOST_OF_A_PROJECT)


async def looked_up(host: str) -> Sequence[str]:
    return await SystemLookup()(host, 80)


def test_an_address_is_looked_up_as_itself() -> None:
    assert asyncio.run(looked_up("127.0.0.1")) == ["127.0.0.1"]


def test_an_invalid_name_has_no_address() -> None:
    with pytest.raises(OSError, match="label"):
        asyncio.run(looked_up(f"{'a' * 64}.example"))


class SlowSystem:
    """Answers when the test allows it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = threading.Event()

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        self.answers.wait(PATIENCE)
        return [host]


def test_name_servers_that_never_answer_use_up_a_bounded_number_of_threads() -> None:
    system = SlowSystem()

    async def look_up() -> list[Sequence[str]]:
        lookup = SystemLookup(most=2, ask=system)
        impatient = [asyncio.create_task(lookup(f"never-{n}.example", 80)) for n in range(5)]
        await turns()
        for each in impatient:
            each.cancel()
        patient = [asyncio.create_task(lookup(f"then-{n}.example", 80)) for n in range(3)]
        await turns()
        async with asyncio.timeout(PATIENCE):
            while len(system.asked) < 2:  # noqa: ASYNC110 - it is asked on other threads
                await asyncio.sleep(0.001)
        assert len(system.asked) == 2
        system.answers.set()
        return await asyncio.gather(*patient)

    assert asyncio.run(look_up()) == [[f"then-{n}.example"] for n in range(3)]


def test_a_failed_lookup_is_reported_and_frees_its_thread() -> None:
    def broken(host: str, port: int) -> Sequence[str]:
        raise RuntimeError("injected")

    async def look_up() -> None:
        lookup = SystemLookup(most=1, ask=broken)
        for number in range(3):
            with pytest.raises(OSError, match="RuntimeError: injected"):
                await asyncio.wait_for(lookup(f"{number}.example", 80), PATIENCE)

    asyncio.run(look_up())


def test_concurrent_lookups_of_a_name_are_combined() -> None:
    system = SlowSystem()

    async def look_up() -> list[Sequence[str]]:
        lookup = SystemLookup(ask=system)
        asking = [asyncio.create_task(lookup("hooks.example", 80)) for _ in range(5)]
        await turns()
        system.answers.set()
        return await asyncio.gather(*asking, lookup("hooks.example", 80))

    assert asyncio.run(look_up()) == [["hooks.example"]] * 6
    assert len(system.asked) == 1


async def turns() -> None:
    """Let the event loop do everything that is ready."""
    for _ in range(20):
        await asyncio.sleep(0)
