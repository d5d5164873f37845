"""Numbers of the feed: the store gives them when it saves, until then new things have relative ones."""

# Above every number that a store will ever give: what is new comes after all that is known.
UNSAVED = 1 << 62


def given(number: int, *, after: int) -> int:
    """Return the number that a relative one becomes if the newest that was given is another one."""
    return number - UNSAVED + after if number > UNSAVED else number
