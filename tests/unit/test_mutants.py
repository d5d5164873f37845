"""Mutants replace existing functions, name existing tests, and cover every rule."""

from pathlib import Path

import pytest

from tests.mutants import mutants
from tests.mutants.placing import MUTANTS, Mutant

ROOT = Path(mutants.__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_the_function_and_the_tests_of_a_mutant_exist(mutant: Mutant) -> None:
    assert mutant.replaced().__module__.startswith("forewarn.")
    for killer in mutant.killers:
        file, _, name = killer.partition("::")
        assert f"def {name}" in (ROOT / file).read_text()


def test_every_rule_has_a_mutant() -> None:
    rules = {mutant.rule for mutant in MUTANTS.values()}
    assert {str(number) for number in range(1, 13)} | {"windows", "budgets"} <= rules


@pytest.mark.parametrize("target", ["core.draft:Draft.gone", "core.gone:it", "core.draft:gone"])
def test_a_mutant_of_a_missing_function_raises_an_error(target: str) -> None:
    gone = Mutant(name="m", target=target, rule="1", killers=(), wrong=lambda: None)
    with pytest.raises(LookupError, match=f"mutant m: forewarn.{target} does not exist"):
        gone.replaced()


def right(number: int, *, more: int = 1) -> int:
    return number + more


other_reference = {"it": right}


def test_all_callers_get_the_mutant_which_may_call_the_original() -> None:
    placed = Mutant(
        name="m", target="m", rule="1", killers=(), wrong=lambda real, number, **more: -real(number, **more)
    )
    placed.put_in_place_of(right)
    assert (right(1), right(1, more=2), other_reference["it"](2)) == (-2, -3, -3)
