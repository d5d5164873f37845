"""How a use case that changes something loads and saves; for operators, or for the users of a project."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

from forewarn.control.ports.clock import Clock
from forewarn.control.ports.store import Store, Transaction
from forewarn.control.scope import ProjectStore
from forewarn.control.signal import Bell
from forewarn.core.draft import Draft
from forewarn.core.model.slice import Slice
from forewarn.core.policy import Policy
from forewarn.core.words import OrderId, ProjectName


class UseCases:
    """What all of them need."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        policy: Policy,
        new_id: Callable[[], str],
        heard: Callable[[OrderId], None] = lambda _: None,
        webhooks_changed: Bell | None = None,
    ) -> None:
        """Take whom to tell of somebody's report of an order, and what to ring when webhooks go."""
        self._heard = heard
        self._store: Store = store
        self._webhooks_changed = webhooks_changed or Bell()
        self._clock = clock
        self._policy = policy
        self._new_id = new_id
        self._project: ProjectName | None = None

    def within(self, project: ProjectName | None) -> Self:
        """Give the same for the users of a project; None: for operators."""
        if project is None:
            return self
        mine = copy(self)
        mine._store, mine._project = ProjectStore(self._store, project), project
        return mine

    @contextmanager
    def _saving(self, tx: Transaction, around: Slice) -> Iterator[Draft]:
        draft = self._draft(around)
        yield draft
        tx.save(draft.changes())

    def _draft(self, around: Slice) -> Draft:
        return Draft(around, now=self._clock.now(), new_id=self._new_id)
