"""What follows at once from what was answered: those who read wait for it, for a moment at most.

A hold is released, and what it held starts with the engine's next look. Whoever has released it and reads
then should find it started, as if both had been one thing.
"""

import threading

# A look takes some milliseconds. If the database has fallen silent, or very much is due, readers do not wait.
LONGEST_WAIT = 0.25


class FollowUp:
    """Whether the engine has still to look at what jobs have changed that were answered."""

    def __init__(self, *, longest_wait: float = LONGEST_WAIT) -> None:
        self._longest_wait = longest_wait
        self._news = threading.Condition()
        self._owed = False
        self._looks = 0

    def owe(self) -> None:
        """Note that something may follow from jobs that are answered now."""
        with self._news:
            self._owed = True

    def looked(self) -> None:
        """Note that the engine has looked, whatever came of it."""
        with self._news:
            self._owed = False
            self._looks += 1
            self._news.notify_all()

    def wait(self) -> None:
        """Wait for the engine's next look, if one is owed; not for what that leaves for later ones."""
        with self._news:
            if self._owed:
                before = self._looks
                self._news.wait_for(lambda: self._looks != before, self._longest_wait)
