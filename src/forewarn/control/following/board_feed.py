"""What changed: the way from what is saved to what boards show.

A reader asks for everything after the number it has, so that nothing is missed whatever happened between.
"""

from collections.abc import Callable

from forewarn.control.ports.store import Delta, Store


class BoardFeed:
    """Hands each change to the boards once; `publish` returns when they show it."""

    def __init__(self, store: Store, publish: Callable[[Delta], None], *, number: int = 0) -> None:
        """Begin after a number that the boards have already."""
        self._store = store
        self._publish = publish
        self._number = number

    def catch_up(self) -> None:
        """Hand on all that has been saved since the last time."""
        with self._store.read() as snapshot:
            delta = snapshot.since(self._number)
        if delta.number > self._number:
            self._publish(delta)
            self._number = delta.number
