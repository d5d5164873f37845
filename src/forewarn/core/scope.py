"""What a caller sees: everything, or one project's things."""

from dataclasses import dataclass, replace

from forewarn.core.basic_types import ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is found and listed for a caller."""

    caller: ProjectName | None  # the project whose people ask; None: an operator, who sees all
    asked: ProjectName | None = None  # the one project that the caller wants to see

    @property
    def project(self) -> ProjectName | None:
        """The project whose things alone are seen; None: those of all, and what belongs to none."""
        return self.asked or self.caller

    def narrowed(self, project: ProjectName) -> "Scope":
        """Return the scope of a project in this one; ValueError if it is not in it."""
        if self.project not in (None, project):
            raise ValueError(project)
        return replace(self, asked=project)


EVERYTHING = Scope(caller=None)
