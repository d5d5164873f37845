"""What a caller sees, and what lists and searches are narrowed to."""

import pytest

from forewarn.core.basic_types import ProjectName
from forewarn.core.filters import HistoryFilter
from forewarn.core.scope import EVERYTHING, Scope

MINE, OTHER = ProjectName("mine"), ProjectName("other")


def test_an_operator_may_look_at_one_project() -> None:
    assert EVERYTHING.project is None
    assert EVERYTHING.narrowed(MINE).project == MINE


def test_a_project_cannot_be_narrowed_to_another_one() -> None:
    scope = Scope(caller=MINE)
    assert scope.narrowed(MINE).project == MINE
    with pytest.raises(ValueError, match="other"):
        scope.narrowed(OTHER)


@pytest.mark.parametrize(("above", "following"), [(None, (None, 7)), (3, (7, None))])
def test_the_next_page_of_records_follows_the_last_number(
    above: int | None, following: tuple[int | None, int | None]
) -> None:
    page = HistoryFilter(above=above).after(7)
    assert (page.above, page.below) == following
