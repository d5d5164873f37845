"""Unknown names, and spelling hints."""

from forewarn.control.naming import HINTS_A_SECOND, HINTS_AT_ONCE, HintAllowance
from forewarn.core.basic_types import ProjectName

SHOP, OTHER = ProjectName("shop"), ProjectName("other")


def test_spelling_hints_are_limited_in_rate() -> None:
    now = 100.0
    allowance = HintAllowance(monotonic=lambda: now)
    assert [allowance.take(SHOP) for _ in range(HINTS_AT_ONCE + 2)] == [True] * HINTS_AT_ONCE + [False] * 2
    now += 1.001
    assert [allowance.take(SHOP) for _ in range(HINTS_A_SECOND + 1)] == [True] * HINTS_A_SECOND + [False]
    now += 3600
    assert [allowance.take(SHOP) for _ in range(HINTS_AT_ONCE + 1)] == [True] * HINTS_AT_ONCE + [False]


def test_each_project_has_its_own_allowance() -> None:
    allowance = HintAllowance(monotonic=lambda: 100.0)
    while allowance.take(SHOP):
        pass
    assert allowance.take(OTHER)
    assert allowance.take(None)
