"""Callers, their roles and tokens, and the project that they see.

Two questions decide every call. The right: may a caller of this role make such a call? The scope: does the
named thing belong to the caller's project? A call without the right is refused. A thing out of scope does not
exist for the caller.
"""

import hashlib
import hmac
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from forewarn.core.basic_types import DEFAULT_PROJECT, ProjectName, Source
from forewarn.core.errors import Conflict, Invalid, NotFound, Refused, Unauthenticated
from forewarn.core.model.order import Order
from forewarn.core.text_formats import hint

# The prefix of every secret, so that a scanner of repositories can find a leaked one.
PREFIX = "fw_"
# Longer lives are typing errors.
LONGEST_LIFE = timedelta(days=3650)

NEEDED = "this needs a token: send it as `Authorization: Bearer …` (the command takes FOREWARN_TOKEN)"
# One message for all three cases, so that a guess reveals nothing.
NOT_GOOD = "the token is not known, has expired or was revoked"


class Role(StrEnum):
    """The role of a token."""

    VIEWER = "viewer"
    USER = "user"
    OPERATOR = "operator"


class Right(StrEnum):
    """The right that a call needs."""

    SEE = "see"  # read a project's things
    SURVEY = "survey"  # read things of no project: hosts, the fleet, the metrics
    USE = "use"  # order work on a project's machines; approve and cancel it
    RUN = "run"  # everything else


RIGHTS = {
    Role.VIEWER: frozenset({Right.SEE, Right.SURVEY}),
    Role.USER: frozenset({Right.SEE, Right.USE}),
    Role.OPERATOR: frozenset(Right),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The author of a call."""

    name: str
    role: Role
    project: ProjectName | None = None  # None: the whole fleet


# The caller before the first token exists: the server then listens on loopback addresses only.
LOCAL_OPERATOR = Caller(name="operator", role=Role.OPERATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A saved token, without its secret."""

    number: int  # of the record that announced it; lists of tokens are in this order
    name: str
    role: Role
    project: ProjectName | None
    digest: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def valid(self, now: datetime) -> bool:
        """Return whether the token is accepted."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A request for a token."""

    name: str
    role: Role
    project: ProjectName | None = None
    life: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """All tokens that are not revoked."""

    tokens: tuple[Token, ...] = ()
    # No token was ever created. After the last one is revoked, calls still need a token.
    unused: bool = True
    number: int = 0  # of the newest record when they were loaded
    _by_digest: dict[str, Token] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_digest", {token.digest: token for token in self.tokens})

    def token(self, secret: str | None, *, now: datetime) -> Token:
        """Return the valid token of a secret; raise Unauthenticated if there is none."""
        if secret is None:
            raise Unauthenticated(NEEDED)
        found = self.find(digest_of(secret), now=now)
        if found is None:
            raise Unauthenticated(NOT_GOOD)
        return found

    def find(self, digest: str, *, now: datetime) -> Token | None:
        """Find a valid token by the digest of its secret."""
        # Its timing may vary: the digest of a guess reveals nothing about the digest of a secret.
        token = self._by_digest.get(digest)
        if token is None or not hmac.compare_digest(token.digest, digest) or not token.valid(now):
            return None
        return token


def caller_of(token: Token) -> Caller:
    """Return the caller that a token authenticates."""
    return Caller(name=token.name, role=token.role, project=token.project)


def digest_of(secret: str) -> str:
    """Hash a secret for storage.

    A secret is long and random, so a fast hash is enough.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def may(caller: Caller, right: Right) -> bool:
    """Whether a caller has a right."""
    if right is Right.SURVEY and caller.project is not None:
        return False
    return right in RIGHTS[caller.role]


def check(caller: Caller, right: Right) -> None:
    """Refuse a call if the caller lacks the right."""
    if may(caller, right):
        return
    if right is Right.SURVEY:
        raise Refused(f"{describe(caller)} sees only project {caller.project}, not the whole fleet")
    needed = "an operator's token" if right is Right.RUN else "a user's or an operator's token"
    raise Refused(f"{describe(caller)} may not do this: it needs {needed}")


def check_change(order: Order | None, *, project: ProjectName | None) -> None:
    """Refuse a project's request to cancel, retry or abandon an order of the platform.

    A project sees the events of a host's maintenance. The order concerns other projects too, and a project
    must not prevent an eviction.
    """
    if project is None or (order is not None and order.source is Source.USER):
        return
    which = "the order" if order is None else f"order {order.id} ({order.action})"
    raise Refused(f"{which} is the platform's: it needs an operator's token")


def check_grant(wanted: Grant, known: Keyring, *, projects: Collection[ProjectName]) -> None:
    """Refuse a token that must not be created."""
    if known.unused and wanted.role is not Role.OPERATOR:
        raise Conflict("the first token must be an operator's: from then on every call needs one")
    if any(token.name == wanted.name for token in known.tokens):
        raise Conflict(f'token "{wanted.name}" exists: revoke it first, or choose another name')
    _check_project(wanted, projects)


def granted(wanted: Grant, *, secret: str, by: str, now: datetime, number: int) -> Token:
    """Create a token."""
    return Token(
        number=number,
        name=wanted.name,
        role=wanted.role,
        project=wanted.project,
        digest=digest_of(secret),
        created_at=now,
        created_by=by,
        expires_at=_expiry(wanted.life, now),
    )


def revoke(name: str, known: Iterable[Token], *, now: datetime) -> Token:
    """Revoke a token by its name."""
    names = []
    for token in known:
        if token.name == name:
            return replace(token, revoked_at=now)
        names.append(token.name)
    raise NotFound(f'token "{name}" does not exist{hint(name, names)}')


def operators(tokens: Iterable[Token], *, now: datetime) -> list[Token]:
    """List the valid tokens of operators."""
    return [token for token in tokens if token.role is Role.OPERATOR and token.valid(now)]


def describe(caller: Caller | Token) -> str:
    """Format a caller with its role: `alice (user of shop)`."""
    of = f" of {caller.project}" if caller.project else ""
    return f"{caller.name} ({caller.role}{of})"


def _check_project(wanted: Grant, projects: Collection[ProjectName]) -> None:
    if wanted.project is None:
        if wanted.role is Role.USER:
            raise Invalid("project: a user's token belongs to one project: name it")
        return
    if wanted.role is Role.OPERATOR:
        raise Invalid("project: an operator's token covers the whole fleet: omit the project")
    if wanted.project not in (*projects, DEFAULT_PROJECT):
        raise Invalid(
            f'project: expected one of the projects, got "{wanted.project}"'
            f"{hint(wanted.project, [*projects, DEFAULT_PROJECT]) or ': declare it in the fleet first'}"
        )


def _expiry(life: timedelta | None, now: datetime) -> datetime | None:
    if life is None:
        return None
    if not timedelta() < life <= LONGEST_LIFE:
        raise Invalid(f"expiry: expected a time greater than zero and at most {LONGEST_LIFE.days} d")
    return now + life


def check_terms(*, emergency: str, driver: str | None, heartbeat: timedelta | None = None) -> None:
    """Refuse what only an operator may request: an emergency, a driver, or a heartbeat."""
    if emergency:
        raise Refused("only an operator may declare an emergency")
    if driver is not None:
        raise Refused("driver: only an operator may choose the driver: omit it to use the host's driver")
    if heartbeat is not None:
        raise Refused("heartbeat_seconds: only an operator may set the heartbeat of a driver")
