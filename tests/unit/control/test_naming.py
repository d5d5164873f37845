"""Names that nothing has, and what may have been meant."""

from forewarn.control.naming import HINTS_A_SECOND, HINTS_AT_ONCE, HintAllowance
from forewarn.core.basic_types import ProjectName

SHOP, OTHER = ProjectName("shop"), ProjectName("other")


def test_names_are_looked_for_no_more_often_than_people_misspell_them() -> None:
    now = 100.0
    allowance = HintAllowance(monotonic=lambda: now)
    assert [allowance.take(SHOP) for _ in range(HINTS_AT_ONCE + 2)] == [True] * HINTS_AT_ONCE + [False] * 2
    now += 1.001
    assert [allowance.take(SHOP) for _ in range(HINTS_A_SECOND + 1)] == [True] * HINTS_A_SECOND + [False]
    now += 3600
    assert [allowance.take(SHOP) for _ in range(HINTS_AT_ONCE + 1)] == [True] * HINTS_AT_ONCE + [False]


def test_a_project_takes_no_hints_from_others() -> None:
    allowance = HintAllowance(monotonic=lambda: 100.0)
    while allowance.take(SHOP):
        pass
    assert allowance.take(OTHER)
    assert allowance.take(None)
