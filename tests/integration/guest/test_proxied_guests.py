"""Guests behind a metadata proxy, which signs the id of the calling machine."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.config import MetadataProxySettings
from forewarn.core.basic_types import EventType, MachineId
from forewarn.core.errors import Invalid
from forewarn.guest.http.listeners import Listen
from forewarn.guest.http.proxied import TrustedProxy
from forewarn.guest.http.refusals import Limit
from forewarn.server.addresses import proxy_addresses
from tests.integration.guest.guest_face import EVENTS, Answer, Client, Face, event, group, machine, serving

SECRET = b"of both"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
# In forewarn's format.
WEB, DB = "6e8e1c4a-0000-4000-8000-000000000001", "6e8e1c4a-0000-4000-8000-000000000002"

LISTED = event(EventType.REBOOT)


def signed(instance: str, *, secret: bytes = SECRET) -> list[str]:
    """Return the headers that OpenStack's proxy sends."""
    named = instance
    signature = hmac.new(secret, named.encode(), hashlib.sha256).hexdigest()
    return [
        "X-Forwarded-For: 192.168.0.7",
        f"X-Instance-ID: {named}",
        "X-Tenant-ID: 4a5e1b93",
        f"X-Instance-ID-Signature: {signature}",
    ]


@contextmanager
def proxied(*, callers: str = "127.0.0.1") -> Iterator[Face]:
    """Serve two machines that are reachable only through a proxy."""
    proxy = TrustedProxy(addresses=frozenset({callers}), secret=SECRET)
    machines = (
        replace(machine("web-0", address="127.0.0.11"), id=MachineId(WEB)),
        replace(machine("db", group="db", address="127.0.0.12"), id=MachineId(DB)),
    )
    with serving(*machines, groups=(group(), group("db"))) as face:
        face.run(face.server.start([Listen(host="127.0.0.1", port=0, proxy=proxy)]))
        yield face


def ask(face: Face, *headers: str, target: str = NAME) -> Answer:
    with Client(face.server.listeners.proxied[0]) as client:
        return client.request("GET", target, *headers, host="nova.example:8775")


def test_the_proxy_calls_for_many_machines_over_one_connection() -> None:
    with proxied() as face, Client(face.server.listeners.proxied[0]) as client:
        for instance, name in [(WEB, b"web-0"), (DB, b"db"), (WEB, b"web-0")]:
            answer = client.request("GET", NAME, *signed(instance), host="nova.example:8775")
            assert (answer.status, answer.body) == (200, name)


def test_ids_are_case_insensitive() -> None:
    with proxied() as face:
        assert ask(face, *signed(WEB.upper())).body == b"web-0"


def test_equal_polls_of_two_machines_get_their_own_answers() -> None:
    with proxied() as face:
        face.show(LISTED, name="db")
        with Client(face.server.listeners.proxied[0]) as client:
            for _ in range(3):
                for instance, events in ((WEB, 0), (DB, 1)):
                    polled = client.request("GET", EVENTS, *signed(instance))
                    assert len(json.loads(polled.body)["Events"]) == events


def test_a_guest_approves_through_the_proxy() -> None:
    with proxied() as face:
        face.show(LISTED)
        with Client(face.server.listeners.proxied[0]) as client:
            body = json.dumps({"StartRequests": [{"EventId": LISTED.id}]}).encode()
            assert client.request("POST", EVENTS, *signed(WEB), body=body).status == 200
        assert face.desk.approved == [(WEB, (LISTED.id,), "127.0.0.1")]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([], id="no headers"),
        pytest.param(signed(WEB, secret=b"another"), id="another secret"),
        pytest.param(signed(WEB)[:3], id="no signature"),
        pytest.param([*signed(WEB), f"X-Instance-ID: {DB}"], id="two ids"),
        pytest.param([*signed(WEB)[:1], f"X-Instance-ID: {DB}", signed(WEB)[3]], id="signed for another"),
        pytest.param(signed("6e8e1c4a-0000-4000-8000-00000000000f"), id="no machine"),
        pytest.param(signed("not-an-id"), id="no id"),
    ],
)
def test_a_request_without_a_valid_signature_counts_as_unknown(headers: list[str]) -> None:
    with proxied() as face:
        assert ask(face, *headers).status == 404


def test_connections_from_other_addresses_are_aborted() -> None:
    with proxied(callers="127.0.0.2") as face:
        with Client(face.server.listeners.proxied[0]) as client:
            assert client.is_closed()
        assert face.server.connections.refusals.counts[Limit.PROXY] == 1
        with Client(face.server.listeners.proxied[0], "127.0.0.2") as client:
            assert client.request("GET", NAME, *signed(WEB)).body == b"web-0"


def test_signatures_are_ignored_on_the_port_for_guests() -> None:
    with proxied() as face, face.connect() as client:
        assert client.request("GET", NAME, "Metadata: true", *signed(WEB)[1:]).status == 404


def test_a_proxy_may_have_many_connections() -> None:
    with proxied() as face:
        clients = [Client(face.server.listeners.proxied[0]) for _ in range(200)]
        try:
            assert {each.request("GET", NAME, *signed(WEB)).status for each in clients} == {200}
        finally:
            for each in clients:
                each.socket.close()


@pytest.mark.parametrize(
    ("callers", "file", "said"),
    [
        ((), "secret", "callers: expected the source addresses"),
        (("proxy.example",), "secret", "callers 'proxy.example': expected an address"),
        (("10.0.0.2",), None, "secret-file: expected the file"),
        (("10.0.0.2",), "missing", "cannot be read"),
        (("10.0.0.2",), "empty", "is empty"),
    ],
)
def test_a_proxy_needs_callers_and_a_secret(
    tmp_path: Path, callers: tuple[str, ...], file: str | None, said: str
) -> None:
    (tmp_path / "secret").write_text("of both\n")
    (tmp_path / "empty").write_text("\n")
    settings = MetadataProxySettings(
        listen=("127.0.0.1:0",), callers=callers, secret_file=None if file is None else str(tmp_path / file)
    )
    with pytest.raises(Invalid, match=said):
        proxy_addresses(settings)


def test_the_secret_is_read_without_its_newline(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of both\n")
    (listen,) = proxy_addresses(
        MetadataProxySettings(
            listen=("10.0.0.5:8775",), callers=("10.0.0.2",), secret_file=str(tmp_path / "secret")
        )
    )
    assert listen.proxy == TrustedProxy(addresses=frozenset({"10.0.0.2"}), secret=SECRET)
