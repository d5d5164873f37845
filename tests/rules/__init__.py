"""The rules that always hold, as code, by their numbers in docs/explanation/rules.md.

The checks look at the whole fleet before and after one transaction and share no code with what makes the
changes, so that the two can be held against each other.
"""

from tests.rules.change import Change
from tests.rules.standing import misplaced, overdue, unexplained
from tests.rules.violations import violations

__all__ = ["Change", "misplaced", "overdue", "unexplained", "violations"]
