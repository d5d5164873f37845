"""Scopes of callers, and filters of lists."""

import pytest

from forewarn.core.basic_types import ProjectName
from forewarn.core.filters import HistoryFilter
from forewarn.core.scope import EVERYTHING, Scope

MINE, OTHER = ProjectName("mine"), ProjectName("other")


def test_an_operator_may_narrow_its_scope_to_one_project() -> None:
    assert EVERYTHING.project is None
    assert EVERYTHING.narrowed(MINE).project == MINE


def test_a_project_cannot_widen_its_scope_to_another_project() -> None:
    scope = Scope(caller=MINE)
    assert scope.narrowed(MINE).project == MINE
    with pytest.raises(ValueError, match="other"):
        scope.narrowed(OTHER)


@pytest.mark.parametrize(("above", "following"), [(None, (None, 7)), (3, (7, None))])
def test_the_next_page_starts_after_the_last_number(
    above: int | None, following: tuple[int | None, int | None]
) -> None:
    page = HistoryFilter(above=above).after(7)
    assert (page.above, page.below) == following
