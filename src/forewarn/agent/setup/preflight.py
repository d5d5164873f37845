"""What would make the agent refuse to start here, seen before it starts or while one runs."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from forewarn.agent.journal.journal_file import lock_of
from forewarn.agent.setup.agent_config import AgentSettings
from forewarn.platform import system


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What was found: what would make it refuse, and what is worth knowing."""

    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def check(agent: AgentSettings) -> Preflight:
    """Check the journal's folder and the port."""
    refused = _unwritable(agent.journal)
    taken = _taken(agent.listen)
    if _is_held(agent.journal):
        # It holds the port too, most likely.
        running = f"an agent runs with the journal {agent.journal} now: another one is refused"
        return Preflight(problems=refused, remarks=(running, *taken))
    return Preflight(problems=(*refused, *taken))


def _is_held(journal: Path) -> bool:
    lock = lock_of(journal)
    try:
        return lock.exists() and system.is_held(lock)
    except OSError:
        return False


def _unwritable(journal: Path) -> tuple[str, ...]:
    """Return why the journal cannot be written; of a folder that does not exist yet, the one above counts."""
    if journal.is_dir():
        return (f"journal: {journal} is a folder",)
    folder = next(each for each in journal.absolute().parents if each.exists())
    if not folder.is_dir():
        return (f"journal: {journal} cannot be written: {folder} is no folder",)
    if os.access(folder, os.W_OK | os.X_OK) and (not journal.exists() or os.access(journal, os.W_OK)):
        return ()
    return (
        f"journal: {journal} cannot be written by the user who asks; check as the one who runs the agent",
    )


def _taken(listen: tuple[str, int] | None) -> tuple[str, ...]:
    if listen is None:
        return ()
    host, port = listen
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As servers do: a connection that ended a moment ago does not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return (f"listen: {host}:{port} cannot be opened: {error.strerror}",)
    return ()
