"""`forewarn host filter --watch`: keep the filter of a host in step with the fleet and its taps."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree

from forewarn.cli.views.host_filter import (
    TABLE,
    Element,
    Filter,
    LoadedFilter,
    Tap,
    differences,
    filter_rules,
    read_loaded,
)
from forewarn.client.replies import AnswerNotUnderstood, RequestRefused, ServerUnreachable
from forewarn.core.errors import ForewarnError
from forewarn.wire.answers.coding import ANSWER_CODEC
from forewarn.wire.answers.fleet_answers import MachineAnswer

# The folder where libvirt keeps the state of running domains.
LIBVIRT_STATUS = Path("/run/libvirt/qemu")
_DEVICES = Path("/sys/class/net")
# libvirt gives a tap the MAC of its guest with this first byte.
_LIBVIRTS_BYTE = "fe"
# The longest time until the tap of a new guest is bound.
LOOK_SECONDS = 1.0
# Looks between two requests to the server, and between two checks of the loaded rules.
LOOKS_FOR_FLEET = 5
# A large fleet is read less often, because every host reads it: 20,000 machines every 100 looks.
MACHINES_FOR_A_LOOK = 200
# The timeout of a request for the fleet.
SERVER_SECONDS = 30.0

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")

T = TypeVar("T")


def taps_of(status: Path = LIBVIRT_STATUS) -> Sequence[Tap]:
    """Return the taps of the guests that libvirt runs on this host.

    A tap is omitted while it changes its guest: then two guests claim it, or its MAC is of another guest.
    """
    try:
        files = sorted(each for each in status.iterdir() if each.suffix == ".xml")
        claims = [claim for file in files for claim in _claims(file)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RequestRefused(f"{error.filename}: {error.strerror}; run this as root on the host") from None
    times = Counter(device for device, *_ in claims)
    found = (_tap(device, mac, macs) for device, mac, macs in claims if times[device] == 1)
    return [tap for tap in found if tap is not None]


def _claims(file: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Return each device of a domain with its MAC, and all MACs of the domain."""
    try:
        root = ElementTree.fromstring(file.read_bytes())  # noqa: S314 libvirt wrote it, for root alone
    except (FileNotFoundError, ElementTree.ParseError):
        return
    found = []
    for interface in root.iterfind(".//devices/interface"):
        mac, target = interface.find("mac"), interface.find("target")
        if mac is not None and target is not None and _MAC.fullmatch(mac.get("address", "").lower()):
            found.append((target.get("dev", ""), mac.get("address", "").lower()))
    # A guest with bonded devices sends with one MAC from all of them.
    macs = tuple(sorted({mac for _, mac in found}))
    yield from ((device, mac, macs) for device, mac in found)


def _tap(device: str, mac: str, macs: tuple[str, ...]) -> Tap | None:
    if not device or "/" in device:
        return None
    try:
        index = int((_DEVICES / device / "ifindex").read_text())
        own = (_DEVICES / device / "address").read_text().strip()
        still = int((_DEVICES / device / "ifindex").read_text())
    except OSError:
        return None  # the device is just being created or removed
    first, _, rest = own.partition(":")
    other_guest = first == _LIBVIRTS_BYTE and rest != mac.partition(":")[2]
    return None if index != still or other_guest else Tap(device=device, index=index, macs=macs)


def load(rules: str) -> None:
    """Load rules in one transaction."""
    _nft("-f", "-", text=rules)


def loaded() -> LoadedFilter | None:
    """Return the loaded filter; None if there is none."""
    try:
        text = _nft("-j", "list", "table", "bridge", TABLE)
    except RequestRefused as refusal:
        if "No such file or directory" in str(refusal):
            return None
        raise
    indexes: Mapping[str, int] = {name: index for index, name in socket.if_nameindex()}
    return read_loaded(text, indexes)


def _nft(*words: str, text: str = "") -> str:
    if (program := shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin")) is None:
        raise RequestRefused("nft does not exist on this host; install nftables")
    done = subprocess.run(  # noqa: S603
        [program, *words], input=text, env={"LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        message = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
        hint = "; run this as root" if "not permitted" in message else ""
        raise RequestRefused(f"nft: {message}{hint}")
    return done.stdout


def in_background(work: Callable[[], None]) -> None:
    """Run a function on a daemon thread."""
    threading.Thread(target=work, name="forewarn-filter-fleet", daemon=True).start()


class SavedFleet:
    """The last fleet in a file, for a host that boots while the server is unreachable."""

    def __init__(self, folder: Path, name: str) -> None:
        """Take the name of the host as typed."""
        self.path = folder / "fleet.json"
        self._name = name

    def read(self) -> tuple[str, Sequence[MachineAnswer]] | None:
        """Return the name of the host and the fleet; None if there is no valid file."""
        try:
            saved = json.loads(self.path.read_bytes())
            if saved["typed"] != self._name:
                return None
            return str(saved["host"]), [ANSWER_CODEC.read(MachineAnswer, each) for each in saved["machines"]]
        except (OSError, KeyError, TypeError, ValueError, RecursionError):
            return None  # missing, or written by another version

    def write(self, host: str, machines: Sequence[MachineAnswer]) -> None:
        """Save the fleet atomically, readable by root alone."""
        written = [ANSWER_CODEC.write(each) for each in machines]
        text = json.dumps({"typed": self._name, "host": host, "machines": written})
        part = self.path.with_suffix(".part")
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except OSError as error:
            raise RequestRefused(f"{part}: {error.strerror}") from None


class FilterWatch:
    """Keep the rules of a host in step with its fleet and its taps.

    A thread of its own reads the fleet, so that a hanging server does not delay the taps.
    """

    def __init__(
        self,
        host: str,
        *,
        fetch: Callable[[], Sequence[MachineAnswer]],
        look: Callable[[], Sequence[Tap]],
        say: Callable[[str], None],
        apply: Callable[[str], None] = load,
        list_loaded: Callable[[], LoadedFilter | None] = loaded,
        reserved: Sequence[str] = (),
        run: Callable[[Callable[[], None]], None] = in_background,
        machines: Sequence[MachineAnswer] | None = None,
        save: Callable[[Sequence[MachineAnswer]], None] = lambda _: None,
    ) -> None:
        """Take functions that read the fleet, the taps and the loaded rules, and that load rules.

        `run` runs slow functions. `machines` is the fleet until the server answers; `save` saves it.
        """
        self._host, self._reserved = host, reserved
        self._fetch, self._look, self._say = fetch, look, say
        self._apply, self._list_loaded, self._run = apply, list_loaded, run
        self._asked: Future[Sequence[MachineAnswer]] | None = None  # the reading thread sets the result
        self._machines = machines
        self._save, self._saved = save, None if machines is None else self._owners(machines)
        self._applied: Filter | None = None
        self._looks_left = 0  # until the server and nft are read again
        self._trouble: dict[str, str] = {}

    def watch(self) -> None:
        """Follow until the process is interrupted."""
        pause = threading.Event()
        try:
            while True:
                self.look()
                pause.wait(LOOK_SECONDS)
        except KeyboardInterrupt:
            return

    def look(self) -> None:
        """Look once, and load changed rules; an error leaves the last rules in place."""
        asks = self._looks_left == 0
        if asks:
            self._looks_left = max(LOOKS_FOR_FLEET, len(self._machines or ()) // MACHINES_FOR_A_LOOK)
        self._looks_left -= 1
        self._ask(asks)
        taps = self._try("taps", self._look)
        if self._machines is None or taps is None:
            return
        wanted = Filter(host=self._host, machines=self._machines, taps=taps, reserved=self._reserved)
        if self._is_applied(wanted) and not (asks and self._was_changed(wanted)):
            self._applied = wanted
            return
        self._applied = None
        if self._try("the rules", lambda: self._load(wanted)):
            self._applied = wanted
            pairs, bound = len(wanted.owners), len(wanted.taps)
            self._say(f"loaded: {pairs} machines of the fleet, {bound} taps of this host")

    def _ask(self, asks: bool) -> None:
        """Start to read the fleet if it is due, and take a finished reading."""
        if asks and self._asked is None:
            self._asked = asked = Future[Sequence[MachineAnswer]]()
            self._run(lambda: _settle(asked, self._fetch))
        if self._asked is not None and self._asked.done():
            machines = self._try("the fleet", self._asked.result)
            self._asked = None
            if machines is not None:
                self._machines = machines
                self._keep(machines)

    def _keep(self, machines: Sequence[MachineAnswer]) -> None:
        """Save a fleet if the part that the filter uses has changed."""
        owners = self._owners(machines)
        if owners != self._saved and self._try("the saved fleet", lambda: self._write(machines)):
            self._saved = owners

    def _write(self, machines: Sequence[MachineAnswer]) -> bool:
        self._save(machines)
        return True

    def _owners(self, machines: Sequence[MachineAnswer]) -> Mapping[Element, str]:
        return Filter(host=self._host, machines=machines).owners

    def _is_applied(self, wanted: Filter) -> bool:
        last = self._applied
        if last is None:
            return False
        # Most looks have the same reading, so this avoids comparing a large fleet each second.
        return (last.machines is wanted.machines and last.taps == wanted.taps) or last.sets == wanted.sets

    def _was_changed(self, wanted: Filter) -> bool:
        found = self._try("the loaded rules", lambda: differences(wanted, self._list_loaded()))
        for line in found or ():
            self._say(f"another program changed the filter: {line}")
        return bool(found)

    def _load(self, wanted: Filter) -> bool:
        self._apply(filter_rules(wanted))
        return True

    def _try(self, what: str, call: Callable[[], T]) -> T | None:
        """Call a function; report an error once, and report its end."""
        try:
            answer = call()
        except (RequestRefused, ServerUnreachable, AnswerNotUnderstood, ForewarnError) as error:
            if self._trouble.get(what) != str(error):
                self._say(f"{what}: {error}; the last rules stay")
            self._trouble[what] = str(error)
            return None
        if self._trouble.pop(what, None) is not None:
            self._say(f"{what}: works again")
        return answer


def _settle(asked: Future[T], call: Callable[[], T]) -> None:
    try:
        asked.set_result(call())
    except Exception as error:  # noqa: BLE001 - the next look raises it
        asked.set_exception(error)
