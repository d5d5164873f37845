"""Reading projects and holds: every decision needs them, and they change seldom.

A connection remembers them with their version, which the transaction reads anyway.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.model.constraints import Hold
from forewarn.core.model.project import Project
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import HOLDS, PROJECTS

_KNOWN = "forewarn.settings"  # in the `info` of a connection
_PROJECTS = PROJECTS.select().order_by(tables.projects.c.name)
_HOLDS = HOLDS.select().order_by(tables.holds.c.at, tables.holds.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    version: str
    projects: Mapping[ProjectName, Project]
    holds: Mapping[str, Hold]


class SettingsReads(Reader):
    """All projects, and all holds that are in force."""

    def projects(self) -> Mapping[ProjectName, Project]:
        """Return all projects."""
        return self._settings().projects

    def holds(self) -> Mapping[str, Hold]:
        """Return all holds that are in force."""
        return self._settings().holds

    def _settings(self) -> _Settings:
        known: _Settings | None = self._connection.info.get(_KNOWN)
        # A version stands for the same projects and holds for ever, also if its transaction is undone.
        if known is None or known.version != self._meta.settings_version:
            known = _Settings(
                version=self._meta.settings_version,
                projects={each.name: each for each in self._list(PROJECTS.read, _PROJECTS)},
                holds={each.id: each for each in self._list(HOLDS.read, _HOLDS)},
            )
            self._connection.info[_KNOWN] = known
        return known
