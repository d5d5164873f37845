"""Conditional PUTs and idempotent POSTs: the headers If-None-Match, If-Match and Idempotency-Key.

A PUT can require that the resource is new, or unchanged since the caller read it. A GET of one resource has
an ETag of its declaration, without times, counts and states that change by themselves. A caller can repeat
a POST with the same Idempotency-Key: the server carries it out once.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

from starlette.requests import Request

from forewarn.api.error_answers import AlreadyExists, ChangedMeanwhile
from forewarn.control.idempotent_calls import IdempotentCall
from forewarn.core.access import Caller, describe
from forewarn.core.errors import Invalid

T = TypeVar("T")

IF_NONE_MATCH, IF_MATCH = "If-None-Match", "If-Match"
DESCRIPTIONS = {
    IF_NONE_MATCH: "`*`: only create. If the resource exists: 409 with the code `AlreadyExists`.",
    IF_MATCH: "The `ETag` of a GET: only change this version. If the declaration has changed: 409 with the "
    "code `Changed`.",
}

_ANY = "*"
_TAGS = re.compile(r'(?:\s*(?:W/)?"[^"\x00-\x1f]*"\s*(?:,|$))+')
_TAG = re.compile(r'"[^"]*"')


def tag_of(declaration: Mapping[str, Any]) -> str:
    """Return the ETag of a declaration."""
    written = json.dumps(declaration, sort_keys=True, default=str)
    return f'"{hashlib.sha256(written.encode()).hexdigest()[:32]}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The condition of a PUT."""

    is_new: bool = False
    tags: tuple[str, ...] = ()  # the resource must have one of them; empty: no condition

    def check(
        self, thing: str, present: T | None, write: Callable[[T], Mapping[str, Any]], *, about: str = ""
    ) -> None:
        """Refuse the PUT if the present resource does not meet the condition; None: there is none.

        `write` returns its declaration. `about` tells the caller which resource it is.
        """
        if self.is_new and present is not None:
            raise AlreadyExists(
                f"{thing} exists already{f' ({about})' if about else ''}, and was not changed: "
                "choose another name, or change the existing one"
            )
        if not self.tags:
            return
        if present is None:
            raise ChangedMeanwhile(
                f"{thing} does not exist any more: it was removed or renamed since you read it"
            )
        if _ANY not in self.tags and tag_of(write(present)) not in self.tags:
            raise ChangedMeanwhile(
                f"{thing} was changed since you read it, and your change is not saved: "
                "read it again, then repeat your change"
            )


class ConditionInput(NamedTuple):
    """The two headers that make a PUT conditional."""

    async def read(self, name: str, request: Request) -> Condition:
        """Read both headers."""
        absent, present = (", ".join(request.headers.getlist(header)) for header in (IF_NONE_MATCH, IF_MATCH))
        if absent and absent.strip() != _ANY:
            raise Invalid(f"{IF_NONE_MATCH}: expected *, got {absent[:100]!r}")
        if absent and present:
            raise Invalid(f"{IF_MATCH} and {IF_NONE_MATCH}: give one of them")
        if not present:
            return Condition(is_new=bool(absent))
        if present.strip() == _ANY:
            return Condition(tags=(_ANY,))
        if not _TAGS.fullmatch(present):
            raise Invalid(
                f"{IF_MATCH}: expected the ETag of a GET, in quotation marks, got {present[:100]!r}"
            )
        return Condition(tags=tuple(_TAG.findall(present)))


PutCondition = Annotated[Condition, ConditionInput()]


KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
ABOUT_KEY = (
    "A unique, unguessable key such as a GUID. If the same request is sent again with the same key within "
    "24 hours, the server returns the first answer and does nothing. If the key was used for another "
    "request: 409."
)
KEY_SCHEMA = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}

_KEY = re.compile(r"[!-~]{1,255}")


async def keyed_call(request: Request) -> IdempotentCall | None:
    """Return the call to remember under its Idempotency-Key; None without a key."""
    keys = request.headers.getlist(KEY_HEADER)
    if not keys:
        return None
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        raise Invalid(f"{KEY_HEADER}: expected one key of 1 to 255 visible ASCII characters")
    caller: Caller = request.state.caller
    query = request.url.query
    return IdempotentCall(
        caller=describe(caller),
        key=keys[0],
        method=request.method,
        path=f"{request.url.path}?{query}" if query else request.url.path,
        body=await request.body(),
    )
