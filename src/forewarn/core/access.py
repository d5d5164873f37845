"""Who asks, what they may do, and whose things they see.

Two questions decide every call. Its right: may a caller of this role make such a call at all? And its scope:
does what it names belong to the caller's project? Who lacks the right is refused; what is out of scope does
not exist for the caller.
"""

import hashlib
import hmac
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from forewarn.core.basic_types import DEFAULT_PROJECT, ProjectName, Source
from forewarn.core.errors import Unauthenticated, Conflict, Invalid, NotFound, Refused
from forewarn.core.model.order import Order
from forewarn.core.text_formats import hint

# What every secret begins with, so that a scanner of repositories can find one that leaked.
PREFIX = "fw_"
# Longer is more likely a slip of the finger than a wish.
LONGEST_LIFE = timedelta(days=3650)

NEEDED = "this needs a token: send it as `Authorization: Bearer …` (the command takes FOREWARN_TOKEN)"
# One message for all three: a guess teaches nothing.
NOT_GOOD = "the token is not known, has expired or was revoked"


class Role(StrEnum):
    """What a token is for."""

    VIEWER = "viewer"
    USER = "user"
    OPERATOR = "operator"


class Right(StrEnum):
    """What a call needs."""

    SEE = "see"  # read what belongs to a project
    SURVEY = "survey"  # read what belongs to no project: hosts, the fleet, the metrics
    USE = "use"  # order something for one's own machines, approve and cancel what was ordered
    RUN = "run"  # everything else


RIGHTS = {
    Role.VIEWER: frozenset({Right.SEE, Right.SURVEY}),
    Role.USER: frozenset({Right.SEE, Right.USE}),
    Role.OPERATOR: frozenset(Right),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks."""

    name: str
    role: Role
    project: ProjectName | None = None  # None: the whole fleet


# The caller while there are no tokens: the service is then reached from the same machine only.
LOCAL_OPERATOR = Caller(name="operator", role=Role.OPERATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is kept of a token: never its secret."""

    number: int  # the record that says it was made; tokens are listed by it
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
    """All tokens that were not revoked."""

    tokens: tuple[Token, ...] = ()
    # No token was ever made. Revoking the last one must not open the door to everybody.
    unused: bool = True
    number: int = 0  # the newest record when they were loaded
    _by_digest: dict[str, Token] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_digest", {token.digest: token for token in self.tokens})

    def caller(self, secret: str | None, *, now: datetime) -> Caller:
        """Return the caller that a secret belongs to; raise Unauthenticated if it belongs to none."""
        return LOCAL_OPERATOR if self.unused else caller_of(self.token(secret, now=now))

    def token(self, secret: str | None, *, now: datetime) -> Token:
        """Return the token that a secret belongs to; raise Unauthenticated if it belongs to none that is good."""
        if secret is None:
            raise Unauthenticated(NEEDED)
        found = self.find(digest_of(secret), now=now)
        if found is None:
            raise Unauthenticated(NOT_GOOD)
        return found

    def find(self, digest: str, *, now: datetime) -> Token | None:
        """Find a good token by the digest of its secret."""
        # However long the look-up takes: the digest of a guess tells nothing about that of a secret.
        token = self._by_digest.get(digest)
        if token is None or not hmac.compare_digest(token.digest, digest) or not token.valid(now):
            return None
        return token


def caller_of(token: Token) -> Caller:
    """Return who asks with a token."""
    return Caller(name=token.name, role=token.role, project=token.project)


def digest_of(secret: str) -> str:
    """Give the form in which a secret is kept.

    A secret is random and long, so that no slow hash is needed: they cannot all be tried.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def may(caller: Caller, right: Right) -> bool:
    """Return whether a caller may make calls of a kind."""
    if right is Right.SURVEY and caller.project is not None:
        return False
    return right in RIGHTS[caller.role]


def check(caller: Caller, right: Right) -> None:
    """Refuse a call that the caller has no right to."""
    if may(caller, right):
        return
    if right is Right.SURVEY:
        raise Refused(f"{describe(caller)} sees project {caller.project} alone, not the whole fleet")
    needed = "an operator's token" if right is Right.RUN else "a user's or an operator's token"
    raise Refused(f"{describe(caller)} may not do this: it takes {needed}")


def check_change(order: Order | None, *, project: ProjectName | None) -> None:
    """Refuse that the users of a project cancel, retry or abandon what is not a user's own order.

    They see the events of a host's maintenance, but its order is not theirs, and concerns others too; nor may
    they keep a machine from being evicted.
    """
    if project is None or (order is not None and order.source is Source.USER):
        return
    which = "the order" if order is None else f"order {order.id} ({order.action})"
    raise Refused(f"{which} is the platform's: it takes an operator's token")


def check_grant(wanted: Grant, known: Keyring, *, projects: Collection[ProjectName]) -> None:
    """Refuse a token that must not be made."""
    if known.unused and wanted.role is not Role.OPERATOR:
        raise Conflict("the first token must be an operator's: from then on every call needs one")
    if any(token.name == wanted.name for token in known.tokens):
        raise Conflict(f'token "{wanted.name}" exists: revoke it first, or choose another name')
    _check_project(wanted, projects)


def granted(wanted: Grant, *, secret: str, by: str, now: datetime, number: int) -> Token:
    """Make a token."""
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
    """End a token."""
    names = []
    for token in known:
        if token.name == name:
            return replace(token, revoked_at=now)
        names.append(token.name)
    raise NotFound(f'token "{name}" does not exist{hint(name, names)}')


def operators(tokens: Iterable[Token], *, now: datetime) -> list[Token]:
    """List the operators' tokens that are good."""
    return [token for token in tokens if token.role is Role.OPERATOR and token.valid(now)]


def describe(caller: Caller | Token) -> str:
    """Name a caller with its role: `alice (user of shop)`."""
    of = f" of {caller.project}" if caller.project else ""
    return f"{caller.name} ({caller.role}{of})"


def _check_project(wanted: Grant, projects: Collection[ProjectName]) -> None:
    if wanted.project is None:
        if wanted.role is Role.USER:
            raise Invalid("project: a user is of one project: say which")
        return
    if wanted.role is Role.OPERATOR:
        raise Invalid("project: an operator's token is for the whole fleet: leave it out")
    if wanted.project not in (*projects, DEFAULT_PROJECT):
        raise Invalid(
            f'project: expected one of the projects, got "{wanted.project}"'
            f"{hint(wanted.project, [*projects, DEFAULT_PROJECT]) or ': declare it in the fleet first'}"
        )


def _expiry(life: timedelta | None, now: datetime) -> datetime | None:
    if life is None:
        return None
    if not timedelta() < life <= LONGEST_LIFE:
        raise Invalid(f"expiry: expected more than nothing and at most {LONGEST_LIFE.days} d")
    return now + life


def check_terms(*, emergency: str, driver: str | None, heartbeat: timedelta | None = None) -> None:
    """Refuse a project's user what only an operator may ask for: broken promises, and who does the work."""
    if emergency:
        raise Refused("only an operator may declare an emergency")
    if driver is not None:
        raise Refused("driver: only an operator may say who does the work: leave it out, its host says so")
    if heartbeat is not None:
        raise Refused("heartbeat_seconds: only an operator may say how long who does the work may be silent")
