"""How tokens are kept."""

from collections.abc import Sequence
from typing import Protocol

from forewarn.core.access import Token


class TokenQueries(Protocol):
    """Reads tokens."""

    def page(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        ...

    def in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, the oldest first; some may have expired."""
        ...

    def any(self) -> bool:
        """Return whether a token was ever made."""
        ...


class TokenChanges(TokenQueries, Protocol):
    """Reads and saves tokens."""

    def save(self, token: Token) -> None:
        """Save a token; one with the same digest is replaced."""
        ...
