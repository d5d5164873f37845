"""Settings that are read again while the service runs, on SIGHUP: certificates and the log's."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import fields, replace

from forewarn.config import Settings
from forewarn.core.errors import ForewarnError, Invalid
from forewarn.server.log_setup import set_up_log
from forewarn.server.threads.operator_server import OperatorServer
from forewarn.server.tls import tls_of

log = logging.getLogger(__name__)

# Whatever a file may make of its reading: nesting without end, huge numbers, a NUL within a path.
_BAD_FILE = (ForewarnError, OSError, ValueError, RecursionError)


class Reloading:
    """Puts into force what has changed in the settings, as far as that needs no restart."""

    def __init__(self, settings: Settings, operator: OperatorServer, *, read: Callable[[], Settings]) -> None:
        """Take the settings in force, and how they are read again."""
        self._settings = settings
        self._read = read
        self._operator = operator

    async def reload(self) -> None:
        """Read everything again; what cannot be used leaves in force what was, and is logged."""
        # Files are read: not on the loop that answers guests.
        await asyncio.to_thread(self._reload)

    def _reload(self) -> None:
        try:
            wanted = self._read()
        except _BAD_FILE as error:
            log.error("the settings cannot be read again, and stay as they are: %s", error)  # noqa: TRY400
            return
        self._try("the log's settings", lambda: set_up_log(wanted))
        self._try("the certificate", lambda: self._use_certificate(wanted))
        for name in needing_restart(self._settings, wanted):
            log.warning("%s has changed: that takes a restart", name)
        log.info("the settings were read again")

    def _try(self, what: str, use: Callable[[], None]) -> None:
        try:
            use()
        except _BAD_FILE as error:
            log.error("%s stays as it was: %s", what, error)  # noqa: TRY400 - it says all there is

    def _use_certificate(self, wanted: Settings) -> None:
        before, after = tls_of(self._settings.operator), tls_of(wanted.operator)
        if (before is None) is not (after is None):
            raise Invalid("[operator] certificate and key: to begin or end TLS takes a restart")
        if after is not None:
            self._operator.use(after.context())
            log.info("those who connect are shown the certificate in %s from now on", after.certificate)


def needing_restart(before: Settings, after: Settings) -> list[str]:
    """Name the parts of the settings that differ and are not put into force by a reload."""
    kept = replace(before.operator, certificate=after.operator.certificate, key=after.operator.key)
    before = replace(before, operator=kept)
    return [
        each.name
        for each in fields(Settings)
        if each.name != "log" and getattr(before, each.name) != getattr(after, each.name)
    ]
