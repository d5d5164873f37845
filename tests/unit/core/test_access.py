"""Who may do what, and whose tokens are good."""

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
from forewarn.core.errors import Unauthenticated, Conflict, ForewarnError, Invalid, NotFound, Refused
from forewarn.core.model.order import Order

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
def test_each_role_has_its_rights_and_no_other(who: Caller, rights: set[Right]) -> None:
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
        ({"driver": "external"}, "driver: only an operator may say who does the work"),
        ({"heartbeat": timedelta(minutes=1)}, "heartbeat_seconds: only an operator may say how long"),
    ],
)
def test_a_projects_user_may_not_break_promises_or_say_who_does_the_work(
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


# Who asks


def test_while_there_is_no_token_anybody_is_an_operator() -> None:
    assert Keyring().caller(None, now=NOW) == LOCAL_OPERATOR
    assert Keyring().caller("fw_stale", now=NOW) == LOCAL_OPERATOR


def test_a_secret_names_its_caller() -> None:
    both = ring(token("alice"), token("bob", role=Role.VIEWER))
    assert both.caller("fw_bob", now=NOW) == Caller(name="bob", role=Role.VIEWER)


@pytest.mark.parametrize("secret", ["fw_bob", "", "fw_alic", "fw_alice ", "\udcff", digest_of("fw_alice")])
def test_another_secret_is_nobodys(secret: str) -> None:
    with pytest.raises(Unauthenticated, match="not known, has expired or was revoked"):
        ring(token("alice")).caller(secret, now=NOW)


def test_no_secret_is_told_what_to_send() -> None:
    with pytest.raises(Unauthenticated, match="Authorization: Bearer"):
        ring(token("alice")).caller(None, now=NOW)


def test_a_token_is_good_until_its_expiry() -> None:
    mine = ring(token("alice", life=timedelta(hours=1)))
    assert mine.caller("fw_alice", now=NOW + timedelta(minutes=59)).name == "alice"
    with pytest.raises(Unauthenticated):
        mine.caller("fw_alice", now=NOW + timedelta(hours=1))


def test_when_the_last_token_is_revoked_the_door_stays_shut() -> None:
    with pytest.raises(Unauthenticated):
        ring().caller(None, now=NOW)


def test_what_is_kept_does_not_show_the_secret() -> None:
    assert "fw_alice" not in repr(token("alice"))
    assert len(digest_of("fw_alice")) == 64


# Making and revoking


def test_the_first_token_is_an_operators() -> None:
    with pytest.raises(Conflict, match="the first token must be an operator's"):
        check_grant(Grant(name="bob", role=Role.VIEWER), Keyring(), projects=())
    check_grant(Grant(name="bob", role=Role.OPERATOR), Keyring(), projects=())


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (Grant(name="alice", role=Role.VIEWER), Conflict, 'token "alice" exists: revoke it first'),
        (Grant(name="bob", role=Role.USER), Invalid, "project: a user is of one project"),
        (Grant(name="bob", role=Role.OPERATOR, project=SHOP), Invalid, "project: an operator's"),
        (Grant(name="bob", role=Role.USER, project=ProjectName("shp")), Invalid, 'got "shp"'),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    wanted: Grant, error: type[ForewarnError], message: str
) -> None:
    with pytest.raises(error, match=message):
        check_grant(wanted, ring(token("alice")), projects=[SHOP])


@pytest.mark.parametrize("project", [SHOP, DEFAULT_PROJECT])
def test_a_project_that_exists_may_have_users_and_the_default_one_always_does(project: ProjectName) -> None:
    check_grant(Grant(name="bob", role=Role.USER, project=project), ring(token("alice")), projects=[SHOP])


@pytest.mark.parametrize("life", [timedelta(), timedelta(seconds=-1), LONGEST_LIFE + timedelta(seconds=1)])
def test_a_life_is_longer_than_nothing_and_has_an_end(life: timedelta) -> None:
    with pytest.raises(Invalid, match="expiry: expected more than nothing"):
        token(life=life)


def test_a_revoked_token_is_no_longer_valid() -> None:
    assert not revoke("alice", [token("alice")], now=NOW).valid(NOW)
    with pytest.raises(NotFound, match='token "bob" does not exist'):
        revoke("bob", [token("alice")], now=NOW)
    with pytest.raises(NotFound, match='token "alicia" does not exist; did you mean alice'):
        revoke("alicia", [token("alice")], now=NOW)


def test_only_good_tokens_of_operators_count_as_operators() -> None:
    alice, bob = token("alice", life=timedelta(hours=1)), token("bob")
    known = [alice, revoke("bob", [bob], now=NOW), token("carol", role=Role.VIEWER)]
    assert operators(known, now=NOW) == [alice]
    assert operators(known, now=NOW + timedelta(hours=1)) == []
