"""Hostile cookies and sign-ins: the server keeps serving, and its memory and sessions are bounded."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.programs.process import Program
from tests.helpers.service.counts import tries
from tests.hostile.attacks import STRANGERS, Usage, address, place
from tests.hostile.test_noisy_tenant import FLEET, Tenants, bearer
from tests.integration.guest.guest_face import Answer, Client, request

MIB = 2**20
SIGN_INS = tries(1000, long=20_000)
REQUESTS = tries(500, long=10_000)
STRANGER = address(0, network=STRANGERS)
# The name for a Host header without a port, as these clients send it.
NAME = "forewarn-session-80"


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[Tenants]:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(FLEET)
    # Rate limits are not the subject of these tests.
    unlimited = {"FOREWARN_GUEST_RATE": "0", "FOREWARN_OPERATOR_RATE": "0"}
    with Program(tmp_path, "--fleet", fleet, environment=unlimited) as program:
        for machine in (1, 2):
            program.guest(address(machine)).document()
        yield Tenants(program)


def test_a_tenant_that_signs_in_without_end_keeps_only_its_newest_sessions(tenants: Tenants) -> None:
    program, cookies = tenants.program, []
    usage = Usage(program.process.pid)
    with Client(place(program.operators), STRANGER) as client:
        for number in range(SIGN_INS):
            answer = client.request("POST", "/v1/session", bearer(tenants.noisy))
            assert answer.status == 201
            cookies.append(answer.headers["set-cookie"].partition(";")[0])
            if number == 100:
                before = usage.memory()
        tenants.others_are_served()
        shown = [client.request("GET", "/v1/session", f"Cookie: {each}").status for each in cookies[-150:]]
    assert shown == [401] * 50 + [200] * 100
    assert usage.memory() - before < 32 * MIB


def test_a_forged_cookie_costs_about_as_much_as_a_guessed_token(tenants: Tenants) -> None:
    program = tenants.program
    usage = Usage(program.process.pid)
    # Heads of the largest size: many cookies, many with the name of the session, and a large one.
    forged = [
        f"Cookie: {NAME}=fws_guess",
        f"Cookie: {'a=b; ' * 11_000}{NAME}=fws_guess",
        f"Cookie: {f'{NAME}=x; ' * 2000}",
        f"Cookie: {NAME}={'x' * 55_000}",
    ]

    def cost(header: str) -> float:
        call = request("GET", "/v1/session", header)
        before = usage.cpu()
        with Client(place(program.operators), STRANGER) as client:
            for _ in range(REQUESTS):
                client.send(call)
                assert client.read().status == 401
        return usage.cpu() - before

    cost(bearer("fw_guess"))  # warm-up
    usual = min(cost(bearer("fw_guess")) for _ in range(3))
    for header in forged:
        # Receiving and parsing a long head takes time, whatever is in it.
        assert min(cost(header) for _ in range(3)) < 6 * usual, header[:40]
    tenants.others_are_served()


def test_a_head_of_more_than_64_kib_of_cookies_is_refused(tenants: Tenants) -> None:
    program = tenants.program
    with Client(place(program.operators), STRANGER) as client:
        assert client.request("GET", "/v1/session", f"Cookie: {'x' * 70_000}").status == 431
    tenants.others_are_served()


def test_sessions_survive_a_kill_and_ended_sessions_stay_ended(tenants: Tenants) -> None:
    program = tenants.program

    def call(method: str, *headers: str) -> Answer:
        with Client(place(program.operators), STRANGER) as client:
            return client.request(method, "/v1/session", *headers)

    begun = [call("POST", bearer(tenants.quiet)) for _ in range(2)]
    kept, ended = (f"Cookie: {each.headers['set-cookie'].partition(';')[0]}" for each in begun)
    csrf = json.loads(begun[1].body)["session"]["csrf"]
    assert call("DELETE", ended, f"X-Forewarn-CSRF: {csrf}").status == 200
    program.kill()
    program.start()
    assert [call("GET", each).status for each in (kept, ended)] == [200, 401]
