"""What is known of a use case before it is run: what it will ask the store for."""

from dataclasses import dataclass

from forewarn.core.words import ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a call will ask for; it may ask for more, or for something else."""

    machine: str  # by its name
    project: ProjectName | None = None  # whose machines alone the caller finds; None: all
    answer: tuple[str, str] | None = None  # what it was answered before, by caller and key
