"""The rehearsals that machines of the guest endpoint take part in."""

from collections.abc import Mapping, Sequence

from forewarn.core.copies import replace
from forewarn.core.rehearsal_ledger import Account, Ledger
from forewarn.core.rehearsal_rules import Fault
from forewarn.core.words import MachineId, ProjectName
from forewarn.guest.board.board import Board
from forewarn.guest.board.rehearsal_state import RehearsalState


class GuestRehearsal:
    """Machines that take part, the faults that their guests meet, and the ledger of what these do."""

    def __init__(self, board: Board, ledger: Ledger) -> None:
        self._board = board
        self._ledger = ledger
        self._states: dict[MachineId, RehearsalState] = {}
        self._faults: tuple[Fault, ...] = ()

    def admit(self, machine: MachineId, name: str) -> None:
        """Let a machine take part; the ledger has it by name."""
        self._ledger.admit(name)
        state = self._states[machine] = RehearsalState(name, self._ledger)
        state.faults = self._faults
        self._board.set_rehearsal(machine, state)

    def meet(self, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        self._faults = tuple(faults)
        for machine, state in self._states.items():
            state.faults = self._faults
            self._board.wake_rehearsal(machine, state)

    def end(self) -> None:
        """End it: its machines are answered as all others are."""
        for machine, state in self._states.items():
            state.faults = ()  # for requests that are held because of one
            self._board.set_rehearsal(machine, None)
        self._states.clear()


class RehearsalRegistry:
    """The rehearsals of a service that others use too: one in a project at a time."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._open: dict[ProjectName, tuple[GuestRehearsal, Ledger]] = {}

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Begin a rehearsal with machines."""
        ledger = Ledger()
        rehearsal = GuestRehearsal(self._board, ledger)
        self._open[project] = (rehearsal, ledger)
        for machine, name in machines.items():
            rehearsal.admit(machine, name)

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        self._open[project][0].meet(faults)

    def accounts(self, project: ProjectName) -> Sequence[Account]:
        """Return what guests have done so far; nothing if the rehearsal has ended meanwhile."""
        if project not in self._open:
            return ()
        return [
            replace(account, seen=dict(account.seen), approved=dict(account.approved))
            for account in self._open[project][1].accounts.values()
        ]

    def close(self, project: ProjectName) -> None:
        """End it: its machines are answered as all others are."""
        self._open.pop(project)[0].end()
