"""The options of an import, and the conflicts between a source and what people declared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forewarn.core.text_formats import shown_value


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTerms:
    """The options of an import."""

    source: str  # the driver that reported the fleet
    take: frozenset[str] = frozenset()  # declared fields that the source may change
    managed: bool = False  # whether machines with another manager are imported
    whole: bool = False  # whether the source reported all hosts, not only those it was asked about

    def kept(self, source: str, fields: Iterable[str]) -> frozenset[str]:
        """Return the fields that this source must not change, given the source of the thing itself."""
        return frozenset() if source == self.source else frozenset(fields) - self.take


class ImportConflicts:
    """Collects the differences that an import leaves alone, each with the way to resolve it."""

    def __init__(self, terms: ImportTerms) -> None:
        self.terms = terms
        self.lines: list[str] = []

    def add(self, what: str, name: str, present: object, value: object) -> None:
        """Add a field that differs."""
        key = name.replace("_", "-")
        has = f"{key} is {shown_value(present)}, {self.terms.source} has {shown_value(value)}"
        self.lines.append(f"{what}: {has} (--take {key})")

    def taken(self, what: str, known: object, said: Mapping[str, object], *, source: str) -> dict[str, Any]:
        """Return the fields of a thing that the import changes, and collect the others."""
        changed_fields = {name: value for name, value in said.items() if getattr(known, name) != value}
        kept = self.terms.kept(source, changed_fields)
        for name in changed_fields:
            if name in kept:
                self.add(what, name, getattr(known, name), changed_fields[name])
        return {name: value for name, value in changed_fields.items() if name not in kept}
