"""How long moves really take in a fleet, beside how long they were expected to."""

from dataclasses import dataclass

# So many seconds of moves are taken to be as expected before there are any: a few say little.
UNPROVEN = 600.0
# Of more than so many seconds of moves, the older count half: networks are changed, and so are machines.
REMEMBERED = 86_400.0
# However slow or fast the moves were, what is expected stays within reason.
LEAST, MOST = 0.25, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds that moves were expected to take by what is known of their machines, and that they took."""

    expected: float = 0.0
    taken: float = 0.0

    @property
    def factor(self) -> float:
        """How many times as long as by machine alone a move takes in this fleet."""
        return min(max((self.taken + UNPROVEN) / (self.expected + UNPROVEN), LEAST), MOST)

    def plus(self, other: "Pace") -> "Pace":
        """Return the sum, in which the newest counts most."""
        expected, taken = self.expected + other.expected, self.taken + other.taken
        kept = 0.5 if expected > REMEMBERED else 1.0
        return Pace(expected=expected * kept, taken=taken * kept)


NO_MOVES = Pace()
