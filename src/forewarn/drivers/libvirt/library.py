"""libvirt-python, imported on the first call, in the driver's own process."""

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
    "libvirt-python is not installed: pip install 'forewarn[libvirt]' (to build it you need libvirt-dev, "
    "pkg-config and a compiler), and restart the server"
)
# Linux changes this file at each boot.
BOOT_ID = "/proc/sys/kernel/random/boot_id"
# A guest that boots or hangs must not block the host's lane for longer, in seconds.
AGENT_TIMEOUT = 3


class NoLibvirtAnswer(Exception):
    """A host is unreachable or has not answered, so the result of the call is unknown."""

    def __init__(self, message: str, *, host: HostName | None = None) -> None:
        """Take the message, and the host if it is unreachable."""
        super().__init__(message)
        self.host = host


class LibvirtRefused(Exception):
    """libvirt has refused a call and done nothing."""


class NoSuchDomain(LibvirtRefused):
    """The host does not have the domain any more."""


def check_installed() -> None:
    """Raise UnusableDriver if the library is missing, without loading it."""
    if importlib.util.find_spec("libvirt") is None:
        raise UnusableDriver(_INSTALL)


def load() -> Any:
    """Import the library and stop it from printing every error to stderr."""
    try:
        libvirt: Any = importlib.import_module("libvirt")
    except ImportError as error:
        raise UnusableDriver(_INSTALL) from error
    libvirt.registerErrorHandler(lambda _context, error: log.debug("libvirt: %s", error[2]), None)
    return libvirt


@contextmanager
def converted_errors(libvirt: Any, host: HostName, connection: Any) -> Iterator[None]:
    """Convert libvirt's errors to NoLibvirtAnswer, NoSuchDomain or LibvirtRefused."""
    try:
        yield
    except libvirt.libvirtError as error:
        message, code = str(error).strip(), error.get_error_code()
        if not is_alive(libvirt, connection):
            raise NoLibvirtAnswer(f"{host}: {message}", host=host) from error
        # After these errors, the call may or may not have taken effect.
        if code in (libvirt.VIR_ERR_RPC, libvirt.VIR_ERR_NO_CONNECT, libvirt.VIR_ERR_OPERATION_TIMEOUT):
            raise NoLibvirtAnswer(f"{host}: {message}") from error
        if code == libvirt.VIR_ERR_NO_DOMAIN:
            raise NoSuchDomain(message) from error
        raise LibvirtRefused(message) from error


def is_alive(libvirt: Any, connection: Any) -> bool:
    """Return whether a connection is open, as far as libvirt knows."""
    try:
        return bool(connection.isAlive())
    except libvirt.libvirtError:
        return False


# The guest agent


def boot_of(libvirt: Any, domain: Any) -> str:
    """Return the guest's boot id from its agent, or "" if the agent does not answer."""
    try:
        handle = _agent(domain, "guest-file-open", path=BOOT_ID, mode="r")
        try:
            answer = _agent(domain, "guest-file-read", handle=handle, count=64)
        finally:
            _agent(domain, "guest-file-close", handle=handle)
        return boot_id(b64decode(answer["buf-b64"]))
    # The guest controls the agent, which may answer anything.
    except (libvirt.libvirtError, KeyError, TypeError, ValueError, RecursionError) as error:
        log.debug("the guest agent of %s does not return its boot id: %s", domain.name(), error)
        return ""


def boot_id(text: bytes) -> str:
    """Parse a boot id, which is a UUID; raise ValueError otherwise."""
    return f"{UUID(text.decode('ascii').strip())}"


def _agent(domain: Any, command: str, **arguments: Any) -> Any:
    call: Any = importlib.import_module("libvirt_qemu").qemuAgentCommand
    text = json.dumps({"execute": command, "arguments": arguments})
    return json.loads(call(domain, text, AGENT_TIMEOUT, 0))["return"]
