"""Headers that say how a call is carried out: only under a condition, and only once.

A PUT may be conditional: only if the thing is new, or only if it is unchanged since it was read. A GET of one
thing answers with an ETag of its declaration. Times, counts and states that change by themselves are no part
of it. A caller may send a call with an Idempotency-Key again, and it is carried out once.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from starlette.requests import Request

from forewarn.api.error_answers import AlreadyExists, ChangedMeanwhile
from forewarn.control.idempotent_calls import IdempotentCall
from forewarn.core.access import Caller, describe
from forewarn.core.errors import Invalid

IF_NONE_MATCH, IF_MATCH = "If-None-Match", "If-Match"
DESCRIPTIONS = {
    IF_NONE_MATCH: "`*`: only if there is no such thing yet; otherwise 409 with the code `AlreadyExists`.",
    IF_MATCH: "The `ETag` of a GET: only if the declaration is still the same; otherwise 409 with the code "
    "`Changed`.",
}

_ANY = "*"
_TAGS = re.compile(r'(?:\s*(?:W/)?"[^"\x00-\x1f]*"\s*(?:,|$))+')
_TAG = re.compile(r'"[^"]*"')


def tag_of(declaration: Mapping[str, Any]) -> str:
    """Return the ETag of a declaration, as it is written in answers."""
    written = json.dumps(declaration, sort_keys=True, default=str)
    return f'"{hashlib.sha256(written.encode()).hexdigest()[:32]}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The condition under which a PUT changes anything."""

    is_new: bool = False
    tags: tuple[str, ...] = ()  # one of them; none: any, or no such thing

    def check(self, thing: str, declaration: Mapping[str, Any] | None, *, about: str = "") -> None:
        """Refuse a PUT of a thing that is declared like this at present; None: there is no such thing.

        `about` tells an existing thing from the one that the caller has in mind.
        """
        if self.is_new and declaration is not None:
            raise AlreadyExists(
                f"{thing} exists already{f' ({about})' if about else ''}, and was not changed: "
                "choose another name, or change the existing one"
            )
        if not self.tags:
            return
        if declaration is None:
            raise ChangedMeanwhile(
                f"{thing} does not exist any more: it was removed or renamed since you read it"
            )
        if _ANY not in self.tags and tag_of(declaration) not in self.tags:
            raise ChangedMeanwhile(
                f"{thing} was changed since you read it, and your change is not saved: "
                "read it again, then repeat your change"
            )


class InConditions(NamedTuple):
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


PutCondition = Annotated[Condition, InConditions()]


KEY_HEADER = "Idempotency-Key"
# Of an answer that was given before.
REPEATED_HEADER = "Idempotency-Replayed"
ABOUT_KEY = (
    "Made by the caller, for each thing to be done: a GUID, or anything that cannot be guessed. Within 24 h "
    "the same request with the same key is answered as before, and nothing is done again; 409 if the key was "
    "used for another."
)
KEY_SCHEMA = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}

_KEY = re.compile(r"[!-~]{1,255}")


async def keyed_call(request: Request) -> IdempotentCall | None:
    """Return a call that may be sent again; None if it has no key."""
    keys = request.headers.getlist(KEY_HEADER)
    if not keys:
        return None
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        raise Invalid(f"{KEY_HEADER}: expected one, of 1 to 255 visible ASCII characters")
    caller: Caller = request.state.caller
    query = request.url.query
    return IdempotentCall(
        caller=describe(caller),
        key=keys[0],
        method=request.method,
        path=f"{request.url.path}?{query}" if query else request.url.path,
        body=await request.body(),
    )
