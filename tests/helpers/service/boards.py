"""Compare boards by everything they would send."""

from typing import Any

from forewarn.guest.board.board import Board
from forewarn.store.store import Store
from forewarn.wire.azure import VERSIONS


def read_whole(store: Store, *, lineage: str) -> Board:
    """Create a board with everything in a store."""
    board = Board(lineage=lineage)
    with store.read() as snapshot:
        board.apply(snapshot.feed.since(0))
    return board


def sent_by(board: Board) -> dict[str, Any]:
    """Return the bytes that a board would send for each group and version, and how it identifies machines."""
    groups = {
        name: (
            board.etag(group),
            group.ready,
            [board.rest(group, version) for version in range(len(VERSIONS))],
        )
        for name, group in board.groups.items()
    }
    machines = {id_: (member.machine, member.group.name) for id_, member in board.members.items()}
    reached = {
        (network, key): member.machine.id
        for network, members in (*board.networks.items(), ("ports", board.ports))
        for key, member in members.items()
    }
    return {"groups": groups, "machines": machines, "reached": reached}
