"""A rehearsal, as the guest endpoint takes part in it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from forewarn.control.rehearsals.ledger import Account, Ledger
from forewarn.core.rehearsal.faults import Fault
from forewarn.core.words import MachineId, ProjectName
from forewarn.guest.board.board import Board
from forewarn.guest.board.rehearsal_state import Role


class Play:
    """Machines that have a part, the faults that their guests meet, and the ledger of what these do."""

    def __init__(self, board: Board, ledger: Ledger) -> None:
        self._board = board
        self._ledger = ledger
        self._roles: dict[MachineId, Role] = {}
        self._faults: tuple[Fault, ...] = ()

    def cast(self, machine: MachineId, name: str) -> None:
        """Give a machine a part; the ledger has it by name."""
        self._ledger.admit(name)
        role = self._roles[machine] = Role(name, self._ledger)
        role.faults = self._faults
        self._board.cast(machine, role)

    def meet(self, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        self._faults = tuple(faults)
        for machine, role in self._roles.items():
            role.faults = self._faults
            self._board.stir(machine, role)

    def end(self) -> None:
        """Let everybody be answered as ever."""
        for machine, role in self._roles.items():
            role.faults = ()  # for requests that are held because of one
            self._board.cast(machine, None)
        self._roles.clear()


class Playhouse:
    """The rehearsals of a service that others use too: one in a project at a time."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._plays: dict[ProjectName, tuple[Play, Ledger]] = {}

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Give machines a part."""
        ledger = Ledger()
        play = Play(self._board, ledger)
        self._plays[project] = (play, ledger)
        for machine, name in machines.items():
            play.cast(machine, name)

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        self._plays[project][0].meet(faults)

    def accounts(self, project: ProjectName) -> Sequence[Account]:
        """Say what guests have done so far."""
        return [
            replace(account, seen=dict(account.seen), approved=dict(account.approved))
            for account in self._plays[project][1].accounts.values()
        ]

    def close(self, project: ProjectName) -> None:
        """Let everybody be answered as ever."""
        self._plays.pop(project)[0].end()
