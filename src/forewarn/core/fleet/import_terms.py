"""What an import may do, and what is said where it and people differ."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forewarn.core.text_formats import paired


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTerms:
    """What an import may do."""

    source: str  # the driver that was asked
    take: frozenset[str] = frozenset()  # the fields of what others speak for that the source may change
    managed: bool = False  # whether machines are taken that another manager has
    whole: bool = False  # whether the source tells of all hosts there are, not only of those that were asked

    def kept(self, source: str, fields: Iterable[str]) -> frozenset[str]:
        """Return the fields that a thing keeps, by who speaks for it."""
        return frozenset() if source == self.source else frozenset(fields) - self.take


class Dispute:
    """Collects where a source and others differ: theirs stays, and it is shown how that is changed."""

    def __init__(self, terms: ImportTerms) -> None:
        self.terms = terms
        self._lines: list[str] = []

    @property
    def lines(self) -> tuple[str, ...]:
        """All that was collected."""
        return tuple(self._lines)

    def say(self, line: str) -> None:
        """Add what differs in its own words."""
        self._lines.append(line)

    def add(self, what: str, name: str, present: object, value: object) -> None:
        """Add a field that differs."""
        key = name.replace("_", "-")
        has = f"{key} is {_said(present)}, {self.terms.source} has {_said(value)}"
        self.say(f"{what}: {has} (--take {key})")

    def taken(self, what: str, known: object, said: Mapping[str, object], *, source: str) -> dict[str, Any]:
        """Return the fields of a thing that change, and add those that stay."""
        differing = {name: value for name, value in said.items() if getattr(known, name) != value}
        kept = self.terms.kept(source, differing)
        for name in differing:
            if name in kept:
                self.add(what, name, getattr(known, name), differing[name])
        return {name: value for name, value in differing.items() if name not in kept}


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return paired(value)
    return "none" if value in (None, "") else f"{value}"
