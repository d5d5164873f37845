"""The part of the fleet that a caller sees: all of it, or one project."""

from dataclasses import dataclass, replace

from forewarn.core.basic_types import ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A caller's view of the fleet."""

    caller: ProjectName | None  # the caller's project; None: an operator, who sees everything
    asked: ProjectName | None = None  # the only project that the caller requested

    @property
    def project(self) -> ProjectName | None:
        """The only project in view; None: all projects and what belongs to none."""
        return self.asked or self.caller

    def narrowed(self, project: ProjectName) -> "Scope":
        """Restrict the scope to one project; ValueError if the project is out of scope."""
        if self.project not in (None, project):
            raise ValueError(project)
        return replace(self, asked=project)


EVERYTHING = Scope(caller=None)
