"""The Idempotency-Key of a call: a caller may send it again, and it is carried out once."""

import re

from starlette.requests import Request

from forewarn.control.idempotent_calls import KeyedCall
from forewarn.core.access import Caller, describe
from forewarn.core.errors import Invalid

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


async def keyed_call(request: Request) -> KeyedCall | None:
    """Return a call that may be sent again; None if it has no key."""
    keys = request.headers.getlist(KEY_HEADER)
    if not keys:
        return None
    if len(keys) != 1 or not _KEY.fullmatch(keys[0]):
        raise Invalid(f"{KEY_HEADER}: expected one, of 1 to 255 visible ASCII characters")
    caller: Caller = request.state.caller
    query = request.url.query
    return KeyedCall(
        caller=describe(caller),
        key=keys[0],
        method=request.method,
        path=f"{request.url.path}?{query}" if query else request.url.path,
        body=await request.body(),
    )
