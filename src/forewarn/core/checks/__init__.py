"""The rules that always hold, as code, by their numbers in docs/explanation/rules.md.

The checks look at the whole fleet before and after one transaction and share no code with what makes the
changes, so that the two can be held against each other.
"""

from forewarn.core.checks.change import Change
from forewarn.core.checks.standing import misplaced, overdue, unexplained
from forewarn.core.checks.violations import violations

__all__ = ["Change", "misplaced", "overdue", "unexplained", "violations"]
