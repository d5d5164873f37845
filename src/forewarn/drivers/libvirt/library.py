"""libvirt-python, imported when a driver is first called, in its own process and never in the server's."""

import importlib
import importlib.util
import json
import logging
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from forewarn.core.basic_types import HostName
from forewarn.drivers.driver_setup import UnusableDriver

log = logging.getLogger(__name__)

_INSTALL = (
    "libvirt-python is not installed: pip install 'forewarn[libvirt]' (it is built with libvirt-dev, "
    "pkg-config and a compiler), and start the server again"
)
# A file of Linux that is another one after each boot.
BOOT_ID = "/proc/sys/kernel/random/boot_id"
# A guest that boots, or hangs, keeps a host's lane no longer, in seconds.
AGENT_WAIT = 3


class NoLibvirtAnswer(Exception):
    """A host cannot be reached, or what it was asked it has not answered: nothing is known."""

    def __init__(self, said: str, *, host: HostName | None = None) -> None:
        """Take what is said of it, and the host, if there is one."""
        super().__init__(said)
        self.host = host


class Declined(Exception):
    """libvirt has said no: what it was asked to do is not done."""


class Gone(Declined):
    """A host does not have the domain any more that it was asked about."""


def check_installed() -> None:
    """Raise UnusableDriver if the library is not there; does not load it."""
    if importlib.util.find_spec("libvirt") is None:
        raise UnusableDriver(_INSTALL)


def load() -> Any:
    """Import the library, and keep it from writing every error to standard error."""
    try:
        libvirt: Any = importlib.import_module("libvirt")
    except ImportError as error:
        raise UnusableDriver(_INSTALL) from error
    libvirt.registerErrorHandler(_note, None)
    return libvirt


def _note(_context: object, error: tuple[Any, ...]) -> None:
    log.debug("libvirt: %s", error[2])


@contextmanager
def asking(libvirt: Any, host: HostName, connection: Any) -> Iterator[None]:
    """Turn what libvirt says into the two kinds of trouble that make a difference."""
    try:
        yield
    except libvirt.libvirtError as error:
        said = str(error).strip()
        if not is_alive(libvirt, connection):
            raise NoLibvirtAnswer(f"{host}: {said}", host=host) from error
        if _says_nothing(libvirt, error):
            raise NoLibvirtAnswer(f"{host}: {said}") from error
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            raise Gone(said) from error
        raise Declined(said) from error


def _says_nothing(libvirt: Any, error: Any) -> bool:
    """Return whether an error says nothing of what was asked: it may be done, or not."""
    silent = (libvirt.VIR_ERR_RPC, libvirt.VIR_ERR_NO_CONNECT, libvirt.VIR_ERR_OPERATION_TIMEOUT)
    return error.get_error_code() in silent


def is_alive(libvirt: Any, connection: Any) -> bool:
    """Return whether a connection stands, as far as libvirt knows."""
    try:
        return bool(connection.isAlive())
    except libvirt.libvirtError:
        return False


# The guest agent


def boot_of(libvirt: Any, domain: Any) -> str:
    """Have the guest agent say which boot this is; "" if it does not."""
    try:
        handle = _agent(domain, "guest-file-open", path=BOOT_ID, mode="r")
        try:
            said = _agent(domain, "guest-file-read", handle=handle, count=64)
        finally:
            _agent(domain, "guest-file-close", handle=handle)
        return boot_id(b64decode(said["buf-b64"]))
    # The agent is the guest's, and may answer anything.
    except (libvirt.libvirtError, KeyError, TypeError, ValueError, RecursionError) as error:
        log.debug("the guest agent of %s does not tell its boot: %s", domain.name(), error)
        return ""


def boot_id(said: bytes) -> str:
    """Return a boot's id, which is a UUID; ValueError for what is none."""
    return f"{UUID(said.decode('ascii').strip())}"


def _agent(domain: Any, command: str, **arguments: Any) -> Any:
    ask: Any = importlib.import_module("libvirt_qemu").qemuAgentCommand
    text = json.dumps({"execute": command, "arguments": arguments})
    return json.loads(ask(domain, text, AGENT_WAIT, 0))["return"]
