"""Saving whether hosts can be reached: machines are sent to none that cannot be, and what waits goes on."""

from collections.abc import Mapping

from forewarn.control.reached_hosts import Reachability, ReachState
from forewarn.control.use_case import UseCase
from forewarn.core.copies import replace
from forewarn.core.orders import lost_hosts
from forewarn.core.words import HostName
from forewarn.store.batch import Transaction

NOT_ASKED = "its driver is not asked any more"


class HostReach(UseCase):
    """Keeps in the store since when hosts cannot be reached."""

    def save(self, tx: Transaction, hosts: Mapping[HostName, Reachability]) -> None:
        """Save what has changed of these hosts since it was last saved."""
        found = {name: host for name in sorted(hosts) if (host := tx.fleet.host(name)) is not None}
        with self._saving(tx, replace(tx.rules.around(), hosts=found)) as draft:
            for name in found:
                match hosts[name].state:
                    case ReachState.UNREACHABLE:
                        lost_hosts.note_unreachable(draft, name, why=hosts[name].why)
                    case ReachState.REACHABLE:
                        lost_hosts.note_reachable(draft, name)
                    case ReachState.UNKNOWN:
                        lost_hosts.note_reachable(draft, name, why=NOT_ASKED)
