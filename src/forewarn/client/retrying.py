"""When a call is sent again: what is beyond a limit has changed nothing, and what has a key is done once."""

from forewarn.client.replies import TOO_MANY, UNAVAILABLE, RequestRefused, ServerUnreachable

KEY_HEADER = "Idempotency-Key"
TRIES = 5
# After a connection broke, in seconds; doubled each time. A server may be on its way back.
FIRST_PAUSE = 0.5
# What lasts longer is told at once: a limit of a project, not of calls.
LONGEST_PAUSE = 10.0


def new_key() -> str:
    """Make a key for one thing to be done."""
    import uuid

    return str(uuid.uuid4())


def pause_after(error: RequestRefused | ServerUnreachable, *, tries: int, has_key: bool) -> float | None:
    """Return after how many seconds a call that failed so often is sent again; None if it is not."""
    if tries >= TRIES:
        return None
    if isinstance(error, ServerUnreachable):
        # One that was never there is not waited for.
        is_back_soon = has_key and (error.broke_off or tries > 1)
        return FIRST_PAUSE * 2 ** (tries - 1) if is_back_soon else None
    if error.status == TOO_MANY or (error.status == UNAVAILABLE and has_key):
        after = error.retry_after
        return after if after is not None and after <= LONGEST_PAUSE else None
    return None


def describe(error: Exception, seconds: float) -> str:
    """Write what a person who waits is to know."""
    return f"trying again in {seconds:g} s: {str(error).splitlines()[0]}"
