"""Discovery of the endpoint: from the environment, at the default address, or from the DHCP lease."""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from forewarn.clock import SystemClock
from forewarn.platform import system
from forewarn.platform.leases import LeaseSource, current
from forewarn.sdk.answer_reading import backoff
from forewarn.sdk.guest_calls import Call, GuestCalls
from forewarn.sdk.guest_errors import EndpointUnavailable, GuestError, NoEndpoint
from forewarn.sdk.transport.endpoint_urls import base_url

DEFAULT_URL = "http://169.254.169.254"
# The second one is the variable of Azure's samples.
VARIABLES = ("FOREWARN_ENDPOINT", "SCHEDULEDEVENTSIP")
ADVICE = "Set its address: FOREWARN_ENDPOINT=http://HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The inputs of discovery in a machine."""

    now: datetime
    environ: Mapping[str, str] = field(default_factory=dict)
    lease_sources: Sequence[LeaseSource] = ()
    default_url: str = DEFAULT_URL


def surroundings() -> Surroundings:
    """Read the inputs of discovery in this machine."""
    return Surroundings(
        now=SystemClock().now(), environ=dict(os.environ), lease_sources=tuple(system.lease_sources())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A place, what was found there, and the URL if it is the endpoint."""

    where: str
    found: str
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """All findings in order; the last one is the endpoint, if there is one."""

    findings: tuple[Finding, ...]

    @property
    def found(self) -> Finding | None:
        """The finding with the endpoint."""
        return next((finding for finding in self.findings if finding.url is not None), None)

    @property
    def url(self) -> str:
        """The endpoint; raises NoEndpoint, which lists the places, if there is none."""
        if self.found is None or self.found.url is None:
            looked = [f"{finding.where}: {finding.found}" for finding in self.findings]
            lines = "".join(f"\n  {line}" for line in looked)
            raise NoEndpoint(f"no metadata endpoint was found.{lines}\n{ADVICE}", looked=looked)
        return self.found.url


def discover(
    calls: GuestCalls, around: Callable[[], Surroundings], *, now: float, within: float = 0.0
) -> Call[Discovery]:
    """Look for the endpoint, repeatedly while that may help: at boot, the network may not be up yet.

    The requests go to the default address.
    """
    seen = around()
    named = _first_found(_variable(name, seen.environ.get(name, "")) for name in VARIABLES)
    if named[-1].url is not None:
        return Discovery(findings=named)
    failures, deadline, after = 0, now + within, 0.0
    while True:
        reply = yield replace(calls.poll(now=now), after=after)
        now, seen = reply.received, around()
        try:
            calls.read_document(calls.answer_of(reply))
        except GuestError as error:
            usual, trouble = Finding(where=seen.default_url, found=str(error)), error
        else:
            usual = Finding(where=seen.default_url, found="answers", url=seen.default_url)
            return Discovery(findings=(*named, usual))
        looked = Discovery(findings=(*named, usual, *_leases(seen)))
        failures += 1
        after = (
            backoff(failures, named=trouble.retry_after)
            if isinstance(trouble, EndpointUnavailable)
            else math.inf
        )
        if looked.found is not None or now + after > deadline:
            return looked


def _first_found(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Take findings until one is the endpoint."""
    looked: list[Finding] = []
    for finding in findings:
        looked.append(finding)
        if finding.url is not None:
            break
    return tuple(looked)


def _leases(around: Surroundings) -> tuple[Finding, ...]:
    # The newest lease comes first.
    found = _first_found(_lease(source, around) for source in reversed(around.lease_sources))
    return found or (Finding(where="DHCP leases", found="none"),)


def _variable(name: str, value: str) -> Finding:
    where = f"the environment, {name}"
    if not value.strip():
        return Finding(where=where, found="not set")
    try:
        return Finding(where=where, found=value, url=base_url(value))
    except NoEndpoint as error:
        raise NoEndpoint(f"{name}: {error}") from None


def _lease(source: LeaseSource, around: Surroundings) -> Finding:
    if source.trouble is not None:
        return Finding(where=source.where, found=f"cannot be read: {source.trouble}")
    lease = current(source.leases, now=around.now)
    if lease is not None:
        return Finding(
            where=source.where, found=f"option 245 is {lease.address}", url=f"http://{lease.address}"
        )
    return Finding(where=source.where, found="option 245 has expired" if source.leases else "no option 245")
