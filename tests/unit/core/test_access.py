"""Roles, rights and tokens."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forewarn.core.access import (
    LOCAL_OPERATOR,
    LONGEST_LIFE,
    Caller,
    Grant,
    Keyring,
    Right,
    Role,
    Token,
    check,
    check_change,
    check_grant,
    check_terms,
    digest_of,
    granted,
    may,
    operators,
    revoke,
)
from forewarn.core.basic_types import DEFAULT_PROJECT, Action, OrderId, ProjectName, Source
from forewarn.core.errors import Conflict, ForewarnError, Invalid, NotFound, Refused, Unauthenticated
from forewarn.core.model.order import Order
from forewarn.core.session_cookies import Credentials, OpenSessions, identify

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SHOP = ProjectName("shop")


def caller(role: Role, project: ProjectName | None = None) -> Caller:
    return Caller(name="alice", role=role, project=project)


def token(name: str = "alice", *, role: Role = Role.OPERATOR, life: timedelta | None = None) -> Token:
    wanted = Grant(name=name, role=role, life=life)
    return granted(wanted, secret=f"fw_{name}", by="test", now=NOW, number=1)


def ring(*tokens: Token) -> Keyring:
    return Keyring(tokens=tokens, unused=False)


# Rights


@pytest.mark.parametrize(
    ("who", "rights"),
    [
        (caller(Role.VIEWER), {Right.SEE, Right.SURVEY}),
        (caller(Role.VIEWER, SHOP), {Right.SEE}),
        (caller(Role.USER, SHOP), {Right.SEE, Right.USE}),
        (caller(Role.OPERATOR), set(Right)),
        (LOCAL_OPERATOR, set(Right)),
    ],
    ids=["viewer", "viewer of a project", "user", "operator", "anybody"],
)
def test_each_role_has_exactly_its_rights(who: Caller, rights: set[Right]) -> None:
    assert {right for right in Right if may(who, right)} == rights
    for right in rights:
        check(who, right)
    for right in set(Right) - rights:
        with pytest.raises(Refused, match=r"alice \("):
            check(who, right)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"emergency": "it burns"}, "only an operator may declare an emergency"),
        ({"driver": "external"}, "driver: only an operator may choose the driver"),
        ({"heartbeat": timedelta(minutes=1)}, "heartbeat_seconds: only an operator may set the heartbeat"),
    ],
)
def test_a_projects_user_may_not_set_emergency_driver_or_heartbeat(
    terms: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        check_terms(**{"emergency": "", "driver": None, **terms})
    check_terms(emergency="", driver=None)


def order(action: Action, source: Source) -> Order:
    return Order(
        id=OrderId("O"),
        number=1,
        action=action,
        work=None,
        source=source,
        project=SHOP,
        machine=None,
        machine_name=None,
        host=None,
        by="test",
        created_at=NOW,
    )


def test_a_projects_users_change_their_own_orders_only() -> None:
    check_change(order(Action.RESTART, Source.USER), project=SHOP)
    with pytest.raises(Refused, match=r"order O \(evict\) is the platform's"):
        check_change(order(Action.EVICT, Source.PLATFORM), project=SHOP)
    with pytest.raises(Refused, match="the order is the platform's"):
        check_change(None, project=SHOP)


def test_operators_change_every_order() -> None:
    check_change(order(Action.EVICT, Source.PLATFORM), project=None)


# Authentication


def authenticated(keyring: Keyring, secret: str | None, *, now: datetime = NOW) -> Caller:
    shown = Credentials(token=secret)
    return identify(shown, keyring, OpenSessions(), now=now, real_now=now).caller


def test_before_the_first_token_every_caller_is_an_operator() -> None:
    assert authenticated(Keyring(), None) == LOCAL_OPERATOR
    assert authenticated(Keyring(), "fw_stale") == LOCAL_OPERATOR


def test_a_secret_identifies_its_caller() -> None:
    both = ring(token("alice"), token("bob", role=Role.VIEWER))
    assert authenticated(both, "fw_bob") == Caller(name="bob", role=Role.VIEWER)


@pytest.mark.parametrize("secret", ["fw_bob", "", "fw_alic", "fw_alice ", "\udcff", digest_of("fw_alice")])
def test_an_unknown_secret_is_refused(secret: str) -> None:
    with pytest.raises(Unauthenticated, match="not known, has expired or was revoked"):
        authenticated(ring(token("alice")), secret)


def test_a_refusal_without_a_secret_says_how_to_send_one() -> None:
    with pytest.raises(Unauthenticated, match="Authorization: Bearer"):
        authenticated(ring(token("alice")), None)


def test_a_token_is_valid_until_it_expires() -> None:
    mine = ring(token("alice", life=timedelta(hours=1)))
    assert authenticated(mine, "fw_alice", now=NOW + timedelta(minutes=59)).name == "alice"
    with pytest.raises(Unauthenticated):
        authenticated(mine, "fw_alice", now=NOW + timedelta(hours=1))


def test_after_the_last_token_is_revoked_calls_still_need_a_token() -> None:
    with pytest.raises(Unauthenticated):
        authenticated(ring(), None)


def test_a_saved_token_does_not_contain_its_secret() -> None:
    assert "fw_alice" not in repr(token("alice"))
    assert len(digest_of("fw_alice")) == 64


# Creating and revoking tokens


def test_the_first_token_is_an_operators() -> None:
    with pytest.raises(Conflict, match="the first token must be an operator's"):
        check_grant(Grant(name="bob", role=Role.VIEWER), Keyring(), projects=())
    check_grant(Grant(name="bob", role=Role.OPERATOR), Keyring(), projects=())


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (Grant(name="alice", role=Role.VIEWER), Conflict, 'token "alice" exists: revoke it first'),
        (Grant(name="bob", role=Role.USER), Invalid, "project: a user's token belongs to one project"),
        (Grant(name="bob", role=Role.OPERATOR, project=SHOP), Invalid, "project: an operator's"),
        (Grant(name="bob", role=Role.USER, project=ProjectName("shp")), Invalid, 'got "shp"'),
    ],
)
def test_an_invalid_token_request_is_refused(wanted: Grant, error: type[ForewarnError], message: str) -> None:
    with pytest.raises(error, match=message):
        check_grant(wanted, ring(token("alice")), projects=[SHOP])


@pytest.mark.parametrize("project", [SHOP, DEFAULT_PROJECT])
def test_known_projects_and_the_default_project_may_have_users(project: ProjectName) -> None:
    check_grant(Grant(name="bob", role=Role.USER, project=project), ring(token("alice")), projects=[SHOP])


@pytest.mark.parametrize("life", [timedelta(), timedelta(seconds=-1), LONGEST_LIFE + timedelta(seconds=1)])
def test_the_life_of_a_token_is_positive_and_limited(life: timedelta) -> None:
    with pytest.raises(Invalid, match="expiry: expected a time greater than zero"):
        token(life=life)


def test_a_revoked_token_is_no_longer_valid() -> None:
    assert not revoke("alice", [token("alice")], now=NOW).valid(NOW)
    with pytest.raises(NotFound, match='token "bob" does not exist'):
        revoke("bob", [token("alice")], now=NOW)
    with pytest.raises(NotFound, match='token "alicia" does not exist; did you mean alice'):
        revoke("alicia", [token("alice")], now=NOW)


def test_only_valid_operator_tokens_count_as_operators() -> None:
    alice, bob = token("alice", life=timedelta(hours=1)), token("bob")
    known = [alice, revoke("bob", [bob], now=NOW), token("carol", role=Role.VIEWER)]
    assert operators(known, now=NOW) == [alice]
    assert operators(known, now=NOW + timedelta(hours=1)) == []
