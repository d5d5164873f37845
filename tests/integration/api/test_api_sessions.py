"""Browser sessions: sign-in, sign-out, cookies and CSRF tokens."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from forewarn.api.authentication import Authenticator, credentials_of, session_secret
from forewarn.api.services import ApiSettings
from forewarn.core.access import LOCAL_OPERATOR, Grant, Role, digest_of
from forewarn.core.errors import Unauthenticated
from forewarn.core.session_cookies import CSRF_HEADER, MOST_SESSIONS, Credentials, Identified
from forewarn.wire.answers.access_answers import SessionAnswer
from tests.helpers.database.transactions import writing
from tests.helpers.programs.follower import Follower
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, check_answer, serving
from tests.helpers.service.tenants import A_USER, A_VIEWER, OPERATOR, VIEWER, bearer
from tests.integration.api.test_api_access import Store, error_of, opened

HERE = "http://127.0.0.1:8170"
COOKIE = "forewarn-session-8170"


class Browser:
    """A browser: it keeps cookies and sends the CSRF token of its session."""

    def __init__(self, app: ASGIApp, base: str = HERE) -> None:
        self._app = app
        self._base = base
        self.cookies = httpx.Cookies()
        self.csrf: str | None = None

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._send(method, path, **more))

    def sign_in(self, secret: str, **more: Any) -> dict[str, Any]:
        answer = self("POST", "/v1/session", headers={**bearer(secret), **more})
        assert answer.status_code == 201, answer.text
        session: dict[str, Any] = answer.json()["session"]
        self.csrf = session["csrf"]
        return session

    def change(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request like a page of the console."""
        return self(method, path, headers={CSRF_HEADER: self.csrf or ""}, **more)

    @property
    def secret(self) -> str:
        """The value of the cookie."""
        return str(next(iter(self.cookies.jar)).value)

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=self._app)
        async with httpx.AsyncClient(
            transport=transport, base_url=self._base, cookies=self.cookies
        ) as client:
            answer = await client.request(method, path, **more)
            self.cookies = client.cookies
            return answer


@pytest.fixture
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    service = opened(tmp_path, tokens="no_tokens" not in request.fixturenames)
    yield service
    service.close()


@pytest.fixture
def no_tokens() -> None:
    """Return an API without tokens."""


@pytest.fixture
def app(service: Service) -> ASGIApp:
    return app_of(service)


@pytest.fixture
def browser(app: ASGIApp) -> Browser:
    return Browser(app)


def with_cookie(app: ASGIApp, value: str, name: str = COOKIE, **headers: str) -> httpx.Response:
    """Return the session of this cookie."""
    return Browser(app)("GET", "/v1/session", headers={"Cookie": f"{name}={value}", **headers})


# Signing in


def test_a_sign_in_that_is_repeated_after_its_session_has_ended_is_refused(
    browser: Browser, app: ASGIApp
) -> None:
    key = {"Idempotency-Key": "sign-in"}
    browser.sign_in(A_USER, **key)
    again = Browser(app)
    again.sign_in(A_USER, **key)
    assert again.secret == browser.secret
    assert browser.change("DELETE", "/v1/session").status_code == 200
    refused = Browser(app)("POST", "/v1/session", headers={**bearer(A_USER), **key})
    assert refused.status_code == 409
    assert "its session has ended" in refused.text
    assert "set-cookie" not in refused.headers
    Browser(app).sign_in(A_USER, **{"Idempotency-Key": "another"})


def test_a_sign_in_that_is_repeated_after_its_session_is_over_is_refused(
    browser: Browser, app: ASGIApp, service: Service
) -> None:
    key = {"Idempotency-Key": "sign-in"}
    service.use_cases.sessions.life = timedelta(hours=1)
    browser.sign_in(A_USER, **key)
    service.real += 2 * 3600
    assert Browser(app)("POST", "/v1/session", headers={**bearer(A_USER), **key}).status_code == 409


def test_signing_in_with_a_token_sets_a_cookie_that_identifies_the_caller(browser: Browser) -> None:
    begun = browser.sign_in(A_USER)
    assert begun["caller"] == {"name": "anna", "role": "user", "project": "a", "rights": ["see", "use"]}
    assert begun["expires_at"] == "2026-01-12T12:00:00Z"
    shown = browser("GET", "/v1/session")
    assert shown.json() == {"session": begun}
    check_answer(SessionAnswer, shown.json())
    assert browser("GET", "/v1/caller").json()["caller"]["name"] == "anna"
    assert browser("GET", "/v1/hosts").status_code == 403
    assert browser("GET", "/v1/machines/b-0").status_code == 404


def test_no_script_reads_the_cookie_and_no_other_site_sends_it(browser: Browser) -> None:
    answer = browser("POST", "/v1/session", headers=bearer(OPERATOR))
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"{COOKIE}=fws_")
    assert set(attributes) == {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=604800"}
    assert browser.secret not in answer.text


def test_under_tls_the_cookie_is_for_tls_alone(app: ASGIApp) -> None:
    browser = Browser(app, "https://127.0.0.1")
    answer = browser("POST", "/v1/session", headers=bearer(OPERATOR))
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert cookie.startswith("__Host-forewarn-session-443=")
    assert "Secure" in attributes
    assert browser("GET", "/v1/session").status_code == 200
    assert with_cookie(app, browser.secret).status_code == 200
    assert with_cookie(app, browser.secret, "__Host-forewarn-session-443").status_code == 401


def test_answers_about_sessions_are_not_cached(browser: Browser) -> None:
    answers = [browser("POST", "/v1/session", headers=bearer(OPERATOR)), browser("GET", "/v1/session")]
    browser.csrf = answers[1].json()["session"]["csrf"]
    answers.append(browser.change("DELETE", "/v1/session"))
    assert [each.headers["cache-control"] for each in answers] == ["no-store"] * 3


def test_two_servers_on_one_address_do_not_sign_each_other_out(app: ASGIApp, service: Service) -> None:
    here = Browser(app)
    there = Browser(app_of(service), "http://127.0.0.1:8180")
    here.sign_in(OPERATOR)
    there.cookies = here.cookies  # browsers share cookies between the ports of an address
    there.sign_in(VIEWER)
    assert {each.name for each in there.cookies.jar} == {COOKIE, "forewarn-session-8180"}
    here.cookies = there.cookies
    assert here("GET", "/v1/session").json()["session"]["caller"]["name"] == "olga"
    assert there("GET", "/v1/session").json()["session"]["caller"]["name"] == "vera"


@pytest.mark.parametrize("headers", [{}, bearer("fw_guessed"), {"Authorization": "Bearer"}])
def test_signing_in_needs_a_valid_token(browser: Browser, headers: dict[str, str]) -> None:
    answer = browser("POST", "/v1/session", headers=headers)
    assert error_of(answer) == (401, "Unauthorized")
    assert "set-cookie" not in answer.headers


def test_a_session_is_not_begun_with_another_session(browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    answer = browser.change("POST", "/v1/session")
    assert error_of(answer) == (409, "Conflict")
    assert "Authorization: Bearer" in answer.text


def test_signing_in_again_ends_the_previous_session(service: Service, app: ASGIApp, browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    before = browser.secret
    browser.sign_in(A_USER)
    assert browser("GET", "/v1/session").json()["session"]["caller"]["name"] == "anna"
    assert with_cookie(app, before).status_code == 401
    assert len(service.sessions.loaded().sessions.sessions) == 1


def test_signing_in_is_repeated_with_its_key_and_gives_the_same_cookie(
    app: ASGIApp, service: Service
) -> None:
    first, again = Browser(app), Browser(app_of(service))
    key = {"Idempotency-Key": "7b1a3a9c"}
    session = first.sign_in(A_USER, **key)
    assert again.sign_in(A_USER, **key) == session
    assert again.secret == first.secret
    assert len(service.sessions.loaded().sessions.sessions) == 1


# Without tokens


@pytest.mark.usefixtures("no_tokens")
def test_on_a_server_without_tokens_every_caller_is_the_local_operator(browser: Browser) -> None:
    session = browser("GET", "/v1/session").json()["session"]
    assert session["caller"]["name"] == "operator"
    assert (session["csrf"], session["expires_at"]) == (None, None)
    assert browser("POST", "/v1/hosts/host-1/cordon").status_code == 202
    for headers in ({}, bearer("fw_stale")):
        refused = browser("POST", "/v1/session", headers=headers)
        assert error_of(refused) == (409, "Conflict")
        assert "nothing to sign in to" in refused.text
    assert error_of(browser("DELETE", "/v1/session")) == (404, "NotFound")


@pytest.mark.usefixtures("no_tokens")
def test_an_old_cookie_is_ignored_on_a_server_without_tokens(app: ASGIApp) -> None:
    assert with_cookie(app, "fws_stale").json()["session"]["caller"]["name"] == "operator"


@pytest.mark.usefixtures("no_tokens")
def test_once_there_is_a_token_the_page_must_sign_in(browser: Browser) -> None:
    made = browser("POST", "/v1/tokens", json={"name": "olga", "role": "operator"}).json()
    assert error_of(browser("GET", "/v1/session")) == (401, "Unauthorized")
    browser.sign_in(made["secret"])
    assert browser("GET", "/v1/session").status_code == 200


# Signing out, and other ends


def test_signing_out_ends_the_session_for_every_copy_of_its_cookie(app: ASGIApp, browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    copied = browser.secret
    ended = browser.change("DELETE", "/v1/session")
    assert ended.json()["session"]["caller"]["name"] == "olga"
    assert ended.headers["set-cookie"].startswith(f'{COOKIE}=""; ')
    assert list(browser.cookies.jar) == []
    refused = with_cookie(app, copied)
    assert error_of(refused) == (401, "Unauthorized")
    assert "sign in again" in refused.text


def test_a_session_ends_with_its_token(service: Service, app: ASGIApp, browser: Browser) -> None:
    browser.sign_in(A_USER)
    operator = Browser(app)
    operator.sign_in(OPERATOR)
    assert operator.change("POST", "/v1/tokens/anna/revoke").status_code == 200
    assert error_of(browser("GET", "/v1/session")) == (401, "Unauthorized")
    # A new token with the same name is another token.
    service.tokens.create(Grant(name="anna", role=Role.OPERATOR), by="test")
    assert error_of(with_cookie(app_of(service), browser.secret)) == (401, "Unauthorized")


def test_a_session_ends_when_its_token_expires_by_service_time(service: Service) -> None:
    wanted = Grant(name="temp", role=Role.VIEWER, life=timedelta(hours=1))
    _, secret = service.tokens.create(wanted, by="test")
    browser = Browser(app_of(service))
    browser.sign_in(secret)
    service.advance(minutes=59)
    assert browser("GET", "/v1/session").status_code == 200
    service.advance(minutes=1)
    assert browser("GET", "/v1/session").status_code == 401


def test_a_session_ends_by_real_time_however_the_services_clock_is_turned(
    service: Service, browser: Browser
) -> None:
    browser.sign_in(OPERATOR)
    service.advance(minutes=60 * 24 * 30)
    assert browser("GET", "/v1/session").status_code == 200
    service.real += timedelta(days=7).total_seconds() - 1
    assert browser("GET", "/v1/session").status_code == 200
    service.real += 1
    assert browser("GET", "/v1/session").status_code == 401


def test_a_session_survives_a_restart(service: Service, browser: Browser) -> None:
    begun = browser.sign_in(A_USER)
    service.restart()
    after = Browser(app_of(service))
    after.cookies = browser.cookies
    assert after("GET", "/v1/session").json() == {"session": begun}


def cookie_at(url: str, browser: Browser) -> str:
    """Return the cookie that the server at this port would set."""
    return f"forewarn-session-{url.rpartition(':')[2]}={browser.secret}"


def test_a_stream_ends_with_the_session_that_it_was_opened_with(app: ASGIApp) -> None:
    first, second = Browser(app), Browser(app)
    for each in (first, second):
        each.sign_in(A_VIEWER)
    with serving(app) as url:
        mine = cookie_at(url, first)
        with Follower(url, cookie=mine) as follower, Follower(url, cookie=cookie_at(url, second)) as other:
            headers = {CSRF_HEADER: first.csrf or "", "Cookie": mine}
            assert httpx.delete(f"{url}/v1/session", headers=headers).status_code == 200
            follower.wait_for_the_end()
            assert follower.whole
            assert not other.whole
            httpx.post(f"{url}/v1/tokens/anna-reads/revoke", headers=bearer(OPERATOR))
            other.wait_for_the_end()
            assert other.whole


def test_a_stream_ends_when_its_session_is_over(service: Service) -> None:
    app = app_of(service, settings=ApiSettings(heartbeat=0.05))
    browser = Browser(app)
    browser.sign_in(A_VIEWER)
    with serving(app) as url, Follower(url, cookie=cookie_at(url, browser)) as follower:
        service.real += timedelta(days=7).total_seconds()
        follower.wait_for_the_end()
        assert follower.whole


# Other processes


def test_a_session_begun_or_ended_elsewhere_counts_within_a_second(service: Service) -> None:
    seconds = 0.0
    authenticator = Authenticator(
        service.sessions, run=Store(), now=service.clock.now, monotonic=lambda: seconds
    )
    by = asyncio.run(authenticator.identify(Credentials(token=A_USER)))
    begun = service.sessions.sign_in(by)
    seconds = 0.95
    known = asyncio.run(authenticator.identify(Credentials(session=begun.secret)))
    assert known.caller.name == "anna"
    service.sessions.sign_out(known)
    seconds = 1.9
    with pytest.raises(Unauthenticated, match="sign in again"):
        asyncio.run(authenticator.identify(Credentials(session=begun.secret)))


def test_sessions_stay_valid_while_the_store_is_away(service: Service) -> None:
    seconds, store = 0.0, Store()
    begun = service.sessions.sign_in(
        Identified(caller=LOCAL_OPERATOR, token=service.sessions.loaded().keyring.tokens[0])
    )
    authenticator = Authenticator(
        service.sessions, run=store, now=service.clock.now, monotonic=lambda: seconds
    )
    store.away, seconds = True, 60.0
    known = asyncio.run(authenticator.identify(Credentials(session=begun.secret)))
    assert known.caller.name == "olga"


def test_forged_cookies_do_not_load_the_worker(service: Service) -> None:
    store = Store()
    authenticator = Authenticator(service.sessions, run=store, now=service.clock.now, monotonic=lambda: 0.0)
    for guess in range(100):
        with pytest.raises(Unauthenticated):
            asyncio.run(authenticator.identify(Credentials(session=f"fws_guess-{guess}")))
    assert store.jobs == 0


# Changes with a session


@pytest.mark.parametrize("given", [[], [""], ["0" * 64], ["the right one", "the right one"], [b"\xff"]])
def test_a_change_with_a_cookie_alone_is_refused(
    service: Service, browser: Browser, given: list[str | bytes]
) -> None:
    browser.sign_in(OPERATOR)
    before = service.history()
    for method, path in (
        *(("POST", "/v1/hosts/host-1/cordon"), ("PUT", "/v1/machines/a-0"), ("PATCH", "/v1/machines/a-0")),
        *(("DELETE", "/v1/machines/a-0"), ("DELETE", "/v1/session"), ("POST", "/v1/session")),
    ):
        sent = [(CSRF_HEADER, browser.csrf if each == "the right one" else each) for each in given]
        refused = browser(method, path, headers=sent)
        assert error_of(refused) == (403, "Forbidden")
        assert CSRF_HEADER in refused.text
    assert service.history() == before
    assert browser("GET", "/v1/session").status_code == 200


def test_a_change_from_the_sessions_own_page_has_its_callers_name(service: Service, browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    assert browser.change("POST", "/v1/hosts/host-1/cordon").status_code == 202
    assert service.history()[-1].by == "olga"


def test_the_csrf_token_of_another_session_is_refused(app: ASGIApp, browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    other = Browser(app)
    other.sign_in(OPERATOR)
    browser.csrf = other.csrf
    assert error_of(browser.change("POST", "/v1/hosts/host-1/cordon")) == (403, "Forbidden")


def test_a_page_of_another_origin_is_refused_with_the_cookie_too(browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    for method, path in (("GET", "/v1/session"), ("POST", "/v1/hosts/host-1/cordon")):
        for origin in ("http://evil.example", "http://127.0.0.1:9999", "null"):
            headers = {"Origin": origin, CSRF_HEADER: browser.csrf or ""}
            assert error_of(browser(method, path, headers=headers)) == (403, "Forbidden")
        headers = {"Host": "evil.example", CSRF_HEADER: browser.csrf or ""}
        assert error_of(browser(method, path, headers=headers)) == (400, "BadHost")
    own = {"Origin": HERE, CSRF_HEADER: browser.csrf or ""}
    assert browser("POST", "/v1/hosts/host-1/cordon", headers=own).status_code == 202


def test_a_page_at_another_port_reads_nothing_with_the_cookie(browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    for said, status in (("same-site", 401), ("cross-site", 401), ("same-origin", 200), ("none", 200)):
        assert browser("GET", "/v1/session", headers={"Sec-Fetch-Site": said}).status_code == status


def test_a_token_in_the_header_counts_whatever_the_cookie_is(browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    shown = browser("GET", "/v1/session", headers=bearer(A_VIEWER)).json()["session"]
    assert (shown["caller"]["name"], shown["csrf"], shown["expires_at"]) == ("anna-reads", None, None)
    assert browser("POST", "/v1/machines/a-0/restart", headers=bearer(A_USER)).status_code == 202
    for bad in (bearer("fw_guessed"), {"Authorization": ""}, {"Authorization": "Digest x"}):
        assert browser("GET", "/v1/session", headers=bad).status_code == 401


# Hostile cookies


@pytest.mark.parametrize(
    "value",
    ["", "fws_guessed", "fw_secret-1", "\xff", '"fws_quoted"', "x" * 60_000, "a=b", "0" * 64],
)
def test_a_forged_cookie_is_refused(app: ASGIApp, value: str) -> None:
    Browser(app).sign_in(OPERATOR)
    headers = [(b"Cookie", f"{COOKIE}={value}".encode("latin-1"))]
    assert error_of(Browser(app)("GET", "/v1/session", headers=headers)) == (401, "Unauthorized")


def test_the_digest_that_is_kept_opens_nothing(service: Service, app: ASGIApp, browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    (kept,) = service.sessions.loaded().sessions.sessions
    for stolen in (kept.digest, kept.token, browser.csrf):
        assert with_cookie(app, str(stolen)).status_code == 401


def test_a_cookie_of_another_server_is_refused(app: ASGIApp, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = opened(tmp_path / "other", tokens=True)
    other.secrets()  # the next number of its generator differs from this one
    elsewhere = Browser(app_of(other))
    elsewhere.sign_in(OPERATOR)
    browser.sign_in(OPERATOR)
    assert with_cookie(app, elsewhere.secret).status_code == 401
    other.close()


def test_duplicate_cookies_are_refused(app: ASGIApp, browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    good, planted = f"{COOKIE}={browser.secret}", f"{COOKIE}=fws_planted"
    for sent in (
        [f"{good}; {planted}"],
        [f"{planted}; {good}"],
        [f"{good};{good}"],
        [good, planted],
        [good, good],
    ):
        headers = [("Cookie", each) for each in sent]
        refused = Browser(app)("GET", "/v1/session", headers=headers)
        assert error_of(refused) == (401, "Unauthorized")
        assert "remove the cookies" in refused.text


def test_other_cookies_are_ignored(app: ASGIApp, browser: Browser) -> None:
    browser.sign_in(OPERATOR)
    others = "; ".join(f"app-{number}={'v' * 50}" for number in range(500))
    for sent in (
        f"{others}; {COOKIE}={browser.secret}",
        f"{COOKIE}={browser.secret}; {others}",
        f"x{COOKIE}=fws_planted; {COOKIE}={browser.secret};;; =;",
        f"{COOKIE}0=fws_planted; {COOKIE}={browser.secret}",
        f"seen={COOKIE}; {COOKIE}={browser.secret}",
    ):
        answer = Browser(app)("GET", "/v1/session", headers={"Cookie": sent})
        assert answer.status_code == 200, sent


def test_the_oldest_session_of_a_token_makes_room_for_the_newest(service: Service, app: ASGIApp) -> None:
    first, others, last = Browser(app), Browser(app), Browser(app)
    first.sign_in(A_USER)
    others.sign_in(OPERATOR)
    (known,) = (
        each for each in service.sessions.loaded().sessions.sessions if digest_of(first.secret) == each.digest
    )
    with writing(service.store) as tx:
        for number in range(1, MOST_SESSIONS):
            later = known.created_at + timedelta(seconds=number)
            tx.sessions.save(replace(known, digest=str(number), created_at=later))
    service.real += MOST_SESSIONS
    last.sign_in(A_USER)
    with service.store.read() as snapshot:
        kept = snapshot.sessions.of_token(known.token)
    assert len(kept) == MOST_SESSIONS
    assert known not in kept
    assert [each("GET", "/v1/session").status_code for each in (first, others, last)] == [401, 200, 200]


def test_ended_sessions_are_removed_at_the_next_sign_in(service: Service, app: ASGIApp) -> None:
    Browser(app).sign_in(A_USER)
    service.real += timedelta(days=8).total_seconds()
    Browser(app).sign_in(OPERATOR)
    (kept,) = service.sessions.loaded().sessions.sessions
    assert kept.created_at == service.real_now()


def test_a_long_cookie_header_is_parsed_in_bounded_time() -> None:
    cookies = f"{COOKIE}=a;" * 2000
    scope = {
        "type": "http",
        "scheme": "http",
        "headers": [(b"host", b"127.0.0.1:8170"), (b"cookie", cookies.encode())],
    }
    assert session_secret(scope) == ""
    assert credentials_of(scope) == Credentials(session="")
