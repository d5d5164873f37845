"""What became of promises of notice."""

from dataclasses import dataclass
from typing import ClassVar

from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseAnswer(ApiAnswer):
    """What became of a project's promises in a month; `judged` is the sum of the first three counts."""

    NOUN: ClassVar = "promise"

    project: str
    month: str
    simulated: bool
    kept: int
    late: int
    never: int
    judged: int
    broken: int
    unannounced: int  # times that other hands were at a machine
