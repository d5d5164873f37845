"""The rules that always hold, as code, with the numbers of docs/explanation/rules.md.

The checks compare the whole fleet before and after one transaction. They share no code with `core`, so that
each can find faults of the other.
"""

from tests.rules.change import Change
from tests.rules.standing import misplaced, overdue, unexplained
from tests.rules.violations import violations

__all__ = ["Change", "misplaced", "overdue", "unexplained", "violations"]
