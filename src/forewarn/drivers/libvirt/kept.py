"""What the driver's process keeps of machines besides their marks.

Copies of definitions: libvirt keeps a definition on the host of its domain alone. Where the settings name a
directory, the driver leaves copies there, by which machines of a lost host are defined elsewhere: when it
begins a step and when a machine has come to another host, soon after libvirt has told of a change, and now
and then of all. Recover reads the copy that was made on the lost host, and no other.

Calls that last: a migration returns when it is over, and a guest agent is waited for. Each runs in a thread
of its own, so that the driver's calls return soon. What such a call says at its end is worth knowing, and
never needed: what became of a step is seen from the domains, as after a crash.

And which domains have been left on hosts that could not be reached.
"""

import logging
import os
import re
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote, unquote

from forewarn.core.basic_types import HostName
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId
from forewarn.drivers.libvirt.library import Declined, NoLibvirtAnswer
from forewarn.drivers.libvirt.sights import LongCall

# A copy whose host has not had the domain for so long is of no use any more, and may hold secrets.
UNUSED_FOR = timedelta(days=1)
_MADE_ON = re.compile(r"<!-- on (\S+) -->\n")
log = logging.getLogger(__name__)


class KeptDefinitions:
    """A directory of definitions, one file for each machine."""

    def __init__(self, directory: str) -> None:
        """Take the directory; "": none is kept."""
        self._directory = Path(directory) if directory else None
        self._writing = threading.Lock()  # held while one thread writes a copy

    @property
    def kept(self) -> bool:
        """Whether copies are kept at all."""
        return self._directory is not None

    def keep(self, uuid: str, xml: str, *, host: HostName) -> None:
        """Keep the definition that a domain has on a host; it may hold secrets."""
        if self._directory is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(self._directory, uuid)
        # As a comment, so that a person can define the domain by the file as it is.
        text = f"<!-- on {_quoted(host)} -->\n{xml}"
        if path.exists() and path.read_text() == text:
            os.utime(path)
            return
        beside = path.with_suffix(".new")
        with self._writing:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)

    def read(self, uuid: str, *, host: HostName | None) -> str:
        """Return the copy of the definition on a lost host; Declined says what to do where there is none."""
        if self._directory is None:
            raise Declined(
                "its lost host alone has its definition: define it on its target (virsh define), then retry; "
                "[drivers.libvirt] definitions = DIRECTORY keeps copies from now on"
            )
        path = self._path(self._directory, uuid)
        try:
            text = path.read_text()
        except OSError as error:
            raise Declined(
                f"there is no copy of its definition ({error}): "
                "define it on its target (virsh define), then retry"
            ) from error
        made_on = _made_on(text)
        if made_on is not None and host is not None and made_on != host:
            raise Declined(
                f"the copy of its definition ({path}) was made on {made_on}, before it came to {host}: "
                "define it on its target as it should be (virsh define), then retry"
            )
        return text

    def forget(self, uuid: str) -> None:
        """Remove the copy of a domain that is no more."""
        if self._directory is not None:
            self._path(self._directory, uuid).unlink(missing_ok=True)

    def prune(self, host: HostName, known: Collection[str], *, now: datetime) -> None:
        """Remove the copies that were made on a host of domains which it has not had for long."""
        if self._directory is None or not self._directory.is_dir():
            return
        oldest = (now - UNUSED_FOR).timestamp()
        wanted = {uuid.lower() for uuid in known}
        for path in self._directory.glob("*.xml"):
            with suppress(OSError):
                old = path.stem not in wanted and path.stat().st_mtime < oldest
                if old and _made_on(path.read_text()) == host:
                    path.unlink()

    def _path(self, directory: Path, uuid: str) -> Path:
        return directory / f"{uuid.lower()}.xml"


class LeftBehind:
    """Which domains have been left on which hosts, as the domains say that were made instead."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both
        self._instead: dict[str, Host] = {}  # the host that has the domain with the note, by its UUID
        self._left_on: dict[str, frozenset[HostName]] = {}

    def note(self, uuid: str, left_on: frozenset[HostName], *, instead: Host) -> None:
        """Take note of what a domain says."""
        with self._lock:
            if left_on:
                self._instead[uuid], self._left_on[uuid] = instead, left_on
            elif uuid in self._instead and self._instead[uuid].name == instead.name:
                del self._instead[uuid], self._left_on[uuid]

    def of(self, host: HostName) -> dict[str, Host]:
        """Return the UUIDs of domains that may be left on a host, and where the one that counts is."""
        with self._lock:
            return {uuid: self._instead[uuid] for uuid, hosts in self._left_on.items() if host in hosts}


def _quoted(host: HostName) -> str:
    return quote(host, safe="").replace("--", "-%2D")  # a comment has no two dashes


def _made_on(text: str) -> HostName | None:
    found = _MADE_ON.match(text)
    return None if found is None else HostName(unquote(found[1]))


@dataclass(eq=False, slots=True)
class _Call:
    attempt: AttemptId
    running: bool = True
    error: str = ""


class LongCalls:
    """The last call of each machine that lasts."""

    def __init__(self, *, ended: Callable[[str], None]) -> None:
        """Take who is told that the call of a machine has ended."""
        self._ended = ended
        self._lock = threading.Lock()
        self._calls: dict[str, _Call] = {}  # guarded, with what is in them, by the lock

    def of(self, attempt: AttemptId) -> LongCall | None:
        """Return how the call of an attempt is doing, if there is one."""
        with self._lock:
            call = self._calls.get(attempt.subject)
            if call is None or call.attempt != attempt:
                return None
            return LongCall(running=call.running, error=call.error)

    def begin(self, attempt: AttemptId, work: Callable[[], None]) -> None:
        """Begin a call."""
        call = _Call(attempt)
        name = f"forewarn-libvirt-{attempt.subject}"
        with self._lock:
            # First: a call without a thread would run forever.
            threading.Thread(target=self._run, args=(call, work), name=name, daemon=True).start()
            self._calls[attempt.subject] = call

    def forget(self, attempt: AttemptId) -> None:
        """Forget the call of an attempt that is over."""
        with self._lock:
            call = self._calls.get(attempt.subject)
            if call is not None and call.attempt == attempt:
                del self._calls[attempt.subject]

    def _run(self, call: _Call, work: Callable[[], None]) -> None:
        error = ""
        try:
            work()
        except Declined as said:
            error = str(said)
        except (
            NoLibvirtAnswer
        ) as unheard:  # what became of it is seen from the domains, once they can be asked
            log.info("%s: %s", call.attempt.subject, unheard)
        except Exception as broken:
            log.exception("a call of libvirt's broke")
            error = f"{type(broken).__name__}: {broken}"
        if error:
            log.info("%s: %s", call.attempt.subject, error)
        with self._lock:
            call.running, call.error = False, error
        self._ended(call.attempt.subject)
