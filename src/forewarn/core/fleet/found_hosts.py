"""Hosts that a source has found, as declarations."""

from typing import Any

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.fleet.declared import host_spec
from forewarn.core.fleet.import_terms import Dispute
from forewarn.core.model.declaration import HostSpec
from forewarn.core.model.inventory import Found


def found_hosts(draft: Draft, found: Found, dispute: Dispute) -> tuple[HostSpec, ...]:
    """Return the hosts that are new, or change."""
    source, specs = dispute.terms.source, []
    for each in found.hosts:
        said: dict[str, Any] = {"driver": source, "uri": each.uri, "labels": each.labels}
        heard = {name: value for name, value in said.items() if value is not None}
        known = draft.hosts.get(each.name)
        if known is None:
            specs.append(HostSpec(name=each.name, source=source, **heard))
            continue
        # A host that says nothing has the fleet's driver.
        present = replace(known, driver=draft.defaults.driver_of(known.driver))
        if taken := dispute.taken(f"host {each.name}", present, heard, source=known.source):
            specs.append(replace(host_spec(known), **taken))
    return tuple(specs)
