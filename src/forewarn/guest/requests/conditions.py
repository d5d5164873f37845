"""The headers that make a poll conditional: If-None-Match, and Prefer: wait."""

from forewarn.guest.requests.plan import Poll
from forewarn.guest.requests.request import Request


def poll_of(request: Request, *, version: int, longest: int) -> Poll:
    """Read what a GET of the document makes its answer depend on."""
    tags = request.listed(b"if-none-match")
    if not tags:
        return Poll(version=version)
    return Poll(
        version=version,
        match=frozenset(_bare(tag) for tag in tags if tag != b"*"),
        match_any=b"*" in tags,
        wait=_wait(request, longest=longest),
        plain=False,
    )


def _bare(tag: bytes) -> bytes:
    """Take the quotes off: clients send entity tags with and without them."""
    return tag.removeprefix(b"W/").strip(b'"')


def _wait(request: Request, *, longest: int) -> int | None:
    """Find for how long the caller prefers to wait; the first such preference counts (RFC 7240)."""
    for preference in request.listed(b"prefer"):
        name, _, value = preference.partition(b";")[0].partition(b"=")
        if name.strip().lower() != b"wait":
            continue
        digits = value.strip().strip(b'"')
        if not digits.isdigit():
            return None
        # More digits than any allowed wait has: no need to read them.
        return longest if len(digits) > len(str(longest)) + 1 else min(int(digits), longest)
    return None
