"""Mutants, and the replacement of a function by its mutant."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

# The global name of the replacement in the module of the replaced function.
_STAND_IN = "_mutant_in_its_place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A wrong function that replaces a right one."""

    name: str
    target: str  # MODULE:FUNCTION or MODULE:CLASS.FUNCTION, within forewarn
    rule: str  # the number of the rule that it breaks, or another requirement
    killers: tuple[str, ...]  # the tests that must catch it: files, or single tests
    wrong: Callable[..., Any]  # takes the right function, then its arguments

    def place(self) -> None:
        """Replace the right function for all callers in this process."""
        self.put_in_place_of(self.replaced())

    def put_in_place_of(self, function: FunctionType) -> None:
        """Replace the code object of the function, so that every import of it calls the mutant."""
        right = FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        right.__kwdefaults__ = function.__kwdefaults__
        function.__globals__[_STAND_IN] = partial(self.wrong, right)
        function.__code__ = _call_stand_in.__code__

    def replaced(self) -> FunctionType:
        """Return the function to replace; LookupError if it does not exist."""
        module, _, path = self.target.partition(":")
        try:
            found: Any = import_module(f"forewarn.{module}")
            for name in path.split("."):
                found = inspect.getattr_static(found, name)
        except (ImportError, AttributeError):
            raise LookupError(
                f"mutant {self.name}: forewarn.{self.target} does not exist; "
                "give it the new name, in tests/mutants/mutants.py"
            ) from None
        found = inspect.unwrap(found.fget if isinstance(found, property) else found)
        if not isinstance(found, FunctionType) or found.__closure__:
            raise LookupError(f"mutant {self.name}: forewarn.{self.target} is no plain function")
        return found


def _call_stand_in(*args: Any, **named: Any) -> Any:
    return _mutant_in_its_place(*args, **named)  # type: ignore[name-defined]  # noqa: F821 - see _STAND_IN


MUTANTS: dict[str, Mutant] = {}


def mutant(target: str, *killers: str, rule: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function as a mutant of another one, which becomes its first argument."""

    def declare(wrong: Callable[..., Any]) -> Callable[..., Any]:
        name = wrong.__name__
        assert name not in MUTANTS, f"there are two mutants {name}"
        MUTANTS[name] = Mutant(
            name=name,
            target=target,
            rule=rule,
            killers=tuple(f"tests/{killer}" for killer in killers),
            wrong=wrong,
        )
        return wrong

    return declare


def place(name: str) -> None:
    """Activate a mutant."""
    import_module("tests.mutants.mutants")
    if name not in MUTANTS:
        sys.exit(f"there is no mutant {name}: tests/mutants/mutants.py has {', '.join(sorted(MUTANTS))}")
    MUTANTS[name].place()
