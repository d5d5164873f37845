"""Hosts that a source has found, as declarations."""

from collections.abc import Mapping
from typing import Any

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.fleet.import_terms import Dispute
from forewarn.core.model.declaration import HostSpec, host_spec
from forewarn.core.model.found_fleet import Found, FoundHost
from forewarn.core.model.host import Host, HostResource


def found_hosts(draft: Draft, found: Found, dispute: Dispute) -> tuple[HostSpec, ...]:
    """Return the hosts that are new, or change."""
    source, specs = dispute.terms.source, []
    for each in found.hosts:
        known = draft.hosts.get(each.name)
        said: dict[str, Any] = {
            "driver": source,
            "uri": each.uri,
            "labels": each.labels,
            "resources": _resources(known, each),
        }
        heard = {name: value for name, value in said.items() if value is not None}
        if known is None:
            specs.append(HostSpec(name=each.name, source=source, **heard))
            continue
        # A host that says nothing has the fleet's driver.
        present = replace(known, driver=draft.defaults.driver_of(known.driver))
        if taken := dispute.taken(f"host {each.name}", present, heard, source=known.source):
            specs.append(replace(host_spec(known), **taken))
    return tuple(specs)


def _resources(known: Host | None, found: FoundHost) -> Mapping[str, HostResource] | None:
    """Return what a host has by what was found; how often it may be given out is for people to say."""
    if known is None or found.resources is None:
        return found.resources
    now = {
        name: replace(known.resources.get(name, resource), amount=resource.amount)
        for name, resource in found.resources.items()
    }
    return {**known.resources, **now}
