"""The pytest plug-in for tests of applications; its fixture `forewarn` is a `Fleet`.

pytest imports this package wherever forewarn is installed, so each name is imported at its first use.
"""

from typing import TYPE_CHECKING

from forewarn.lazy import lazily

if TYPE_CHECKING:
    from forewarn.core.errors import Conflict as Conflict
    from forewarn.testing.events import Event as Event
    from forewarn.testing.events import Order as Order
    from forewarn.testing.faults import PutFault as PutFault
    from forewarn.testing.fleet import Fleet as Fleet
    from forewarn.testing.machine import Host as Host
    from forewarn.testing.machine import Machine as Machine

_HOMES = {
    "Conflict": "forewarn.core.errors",
    "Event": "forewarn.testing.events",
    "Order": "forewarn.testing.events",
    "PutFault": "forewarn.testing.faults",
    "Fleet": "forewarn.testing.fleet",
    "Host": "forewarn.testing.machine",
    "Machine": "forewarn.testing.machine",
}

__getattr__, __dir__ = lazily(globals(), _HOMES)
