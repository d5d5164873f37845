"""Finding the endpoint: an explicit address, the usual one if it answers, or the one that DHCP named."""

from dataclasses import dataclass

from forewarn.sdk.conversation import Conversation, Talk
from forewarn.sdk.errors import GuestError, NoEndpoint
from forewarn.sdk.leases import current
from forewarn.sdk.platform import LeaseSource, Surroundings
from forewarn.sdk.transport import base_url

# Ours, and the one that Azure's own samples read.
VARIABLES = ("FOREWARN_ENDPOINT", "SCHEDULEDEVENTSIP")

ADVICE = "Say where it is: FOREWARN_ENDPOINT=http://HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A place where the endpoint was looked for, what was found there, and the URL if that is it."""

    place: str
    found: str
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """All findings, in the order of looking; the last is the endpoint, if there is one."""

    findings: tuple[Finding, ...]

    @property
    def found(self) -> Finding | None:
        """The place that has it."""
        return next((finding for finding in self.findings if finding.url is not None), None)

    @property
    def url(self) -> str:
        """The endpoint; an error that says where it was looked for, if there is none."""
        if self.found is None or self.found.url is None:
            looked = [f"{finding.place}: {finding.found}" for finding in self.findings]
            lines = "".join(f"\n  {line}" for line in looked)
            raise NoEndpoint(f"no metadata endpoint was found.{lines}\n{ADVICE}", looked=looked)
        return self.found.url


def looking(conversation: Conversation, around: Surroundings, *, now: float) -> Talk[Discovery]:
    """Look for the endpoint; what is asked is asked of the usual address."""
    findings: list[Finding] = []
    for name in VARIABLES:
        findings.append(_variable(name, around.environ.get(name, "")))
        if findings[-1].url is not None:
            return Discovery(findings=tuple(findings))
    try:
        yield from conversation.events(now=now, within=0)
    except GuestError as error:
        findings.append(Finding(place=around.default_url, found=str(error)))
    else:
        findings.append(Finding(place=around.default_url, found="answers", url=around.default_url))
        return Discovery(findings=tuple(findings))
    # The newest lease counts.
    for source in reversed(around.lease_sources):
        findings.append(_lease(source, around))
        if findings[-1].url is not None:
            return Discovery(findings=tuple(findings))
    if not around.lease_sources:
        findings.append(Finding(place="DHCP leases", found="there are none"))
    return Discovery(findings=tuple(findings))


def _variable(name: str, value: str) -> Finding:
    place = f"the environment, {name}"
    if not value.strip():
        return Finding(place=place, found="not set")
    try:
        return Finding(place=place, found=value, url=base_url(value))
    except NoEndpoint as error:
        raise NoEndpoint(f"{name}: {error}") from None


def _lease(source: LeaseSource, around: Surroundings) -> Finding:
    if source.trouble is not None:
        return Finding(place=source.place, found=f"cannot be read: {source.trouble}")
    lease = current(source.leases, now=around.now)
    if lease is not None:
        return Finding(
            place=source.place, found=f"option 245 is {lease.address}", url=f"http://{lease.address}"
        )
    return Finding(place=source.place, found="option 245 has expired" if source.leases else "no option 245")
