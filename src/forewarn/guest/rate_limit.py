"""The rate limit: a token bucket kept as one number."""

# Additions of the interval must not turn the last token of a burst into one too many.
ROUNDING = 1e-9


class Allowance:
    """What a machine, or all unknown callers together, have taken of what they may take."""

    __slots__ = ("connections", "due", "held")

    def __init__(self) -> None:
        self.connections = 0
        self.held = 0
        self.due = 0.0  # when the bucket will be full again, in real time


class Rate:
    """So many requests a second, with a burst of twice as many.

    A bucket is full again at `due`; every request moves that by one interval, and may do so while it lies
    no further ahead than a burst lasts. Without a limit the interval is nothing, and so is what it moves.
    """

    __slots__ = ("interval", "slack")

    def __init__(self, per_second: float) -> None:
        burst = max(1.0, 2 * per_second)
        self.interval = 1 / per_second if per_second > 0 else 0.0
        self.slack = (burst - 1) * self.interval + ROUNDING

    def admit(self, budget: Allowance, now: float) -> bool:
        """Take a token if there is one."""
        due = max(budget.due, now)
        if due - now > self.slack:
            return False
        budget.due = due + self.interval
        return True
