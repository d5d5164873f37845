"""For other people's tests: the pytest plug-in, whose fixture `forewarn` is a `Fleet`.

pytest imports this wherever forewarn is installed, so each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forewarn.core.errors import Conflict as Conflict
    from forewarn.testing.events import Event as Event
    from forewarn.testing.events import Order as Order
    from forewarn.testing.faults import PutFault as PutFault
    from forewarn.testing.fleet import Fleet as Fleet
    from forewarn.testing.host import Host as Host
    from forewarn.testing.machine import Machine as Machine

_HOMES = {
    "Conflict": "forewarn.core.errors",
    "Event": "forewarn.testing.events",
    "Order": "forewarn.testing.events",
    "PutFault": "forewarn.testing.faults",
    "Fleet": "forewarn.testing.fleet",
    "Host": "forewarn.testing.host",
    "Machine": "forewarn.testing.machine",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
