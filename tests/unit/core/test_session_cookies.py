"""Browser sessions: authentication, CSRF tokens, start and end."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.access import LOCAL_OPERATOR, Keyring, Role, Token, digest_of
from forewarn.core.errors import Conflict, NotFound, Refused, Unauthenticated
from forewarn.core.session_cookies import (
    MOST_SESSIONS,
    BrowserSession,
    Credentials,
    Identified,
    OpenSessions,
    begun,
    check_csrf,
    csrf_of,
    identify,
    session_to_end,
    surplus,
    token_for_session,
)

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
REAL = datetime(2030, 6, 1, tzinfo=UTC)
WEEK = timedelta(days=7)
SECRET = "fws_secret"
ANNA = Token(
    number=1,
    name="anna",
    role=Role.VIEWER,
    project=None,
    digest=digest_of("fw_anna"),
    created_at=NOW,
    created_by="test",
    expires_at=NOW + timedelta(hours=1),
)
SESSION = begun(ANNA, secret=SECRET, real_now=REAL, life=WEEK)


def known(
    shown: Credentials, *tokens: Token, now: datetime = NOW, real_now: datetime = REAL, unused: bool = False
) -> Identified:
    keyring = Keyring(tokens=tokens, unused=unused)
    return identify(shown, keyring, OpenSessions(sessions=(SESSION,)), now=now, real_now=real_now)


def test_a_session_has_the_rights_of_its_token() -> None:
    found = known(Credentials(session=SECRET), ANNA)
    assert (found.caller.name, found.caller.role) == ("anna", Role.VIEWER)
    assert (found.token, found.session, found.csrf) == (ANNA, SESSION, csrf_of(SECRET))


def test_a_token_needs_no_session_and_no_csrf() -> None:
    found = known(Credentials(token="fw_anna"), ANNA)
    assert (found.session, found.csrf) == (None, None)


def test_before_the_first_token_credentials_are_ignored() -> None:
    for shown in (Credentials(), Credentials(token="x"), Credentials(session="x")):
        assert known(shown, unused=True) == Identified(caller=LOCAL_OPERATOR)


def test_a_session_ends_with_its_token_or_at_its_expiry_in_real_time() -> None:
    shown = Credentials(session=SECRET)
    last = {"now": NOW + timedelta(minutes=59), "real_now": REAL + WEEK - timedelta(microseconds=1)}
    assert known(shown, ANNA, **last).session == SESSION
    for tokens, moments in (
        ((), {}),
        ((ANNA,), {"now": NOW + timedelta(hours=1)}),
        ((ANNA,), {"real_now": REAL + WEEK}),
    ):
        with pytest.raises(Unauthenticated, match="sign in again"):
            known(shown, *tokens, **moments)


@pytest.mark.parametrize("secret", ["", "fws_other", SESSION.digest, "fw_anna", csrf_of(SECRET), "\udcff"])
def test_an_unknown_session_secret_is_refused(secret: str) -> None:
    with pytest.raises(Unauthenticated):
        known(Credentials(session=secret), ANNA)


def test_a_session_secret_is_not_a_token_and_vice_versa() -> None:
    with pytest.raises(Unauthenticated):
        known(Credentials(token=SECRET), ANNA)


def test_csrf_tokens_differ_and_reveal_no_digest() -> None:
    assert len({csrf_of("fws_a"), csrf_of("fws_b"), digest_of("fws_a"), digest_of("fws_b")}) == 4


@pytest.mark.parametrize("given", [[], [""], ["ü"], [csrf_of("fws_other")], [csrf_of(SECRET)] * 2])
def test_a_call_with_a_session_needs_exactly_one_csrf_token(given: list[str]) -> None:
    found = known(Credentials(session=SECRET), ANNA)
    check_csrf(found, [csrf_of(SECRET)])
    with pytest.raises(Refused, match="X-Forewarn-CSRF"):
        check_csrf(found, given)
    check_csrf(known(Credentials(token="fw_anna"), ANNA), given)


def test_a_token_starts_a_session_and_the_session_ends_itself() -> None:
    by_token, by_session = (
        known(shown, ANNA) for shown in (Credentials(token="fw_anna"), Credentials(session=SECRET))
    )
    assert token_for_session(by_token) == ANNA
    assert session_to_end(by_session) == SESSION
    with pytest.raises(Conflict, match="not with another session"):
        token_for_session(by_session)
    with pytest.raises(Conflict, match="nothing to sign in to"):
        token_for_session(Identified(caller=LOCAL_OPERATOR))
    with pytest.raises(NotFound):
        session_to_end(by_token)


def test_surplus_sessions_are_the_oldest() -> None:
    many = [
        BrowserSession(digest=str(number), token="t", created_at=REAL, expires_at=REAL)
        for number in range(MOST_SESSIONS + 2)
    ]
    assert surplus(many[: MOST_SESSIONS - 1]) == []
    assert surplus(many) == many[:3]
