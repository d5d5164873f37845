"""What the API needs of the server it is part of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Protocol, TypeVar

from fastapi import Depends, Request

from forewarn.control.following.recent_records import ProjectTail, Tail
from forewarn.control.plane import Plane
from forewarn.control.rehearsals.rehearsals import Rehearsals
from forewarn.control.rollouts.rollouts import Rollouts
from forewarn.control.tokens import Tokens
from forewarn.control.views import Views
from forewarn.control.webhooks import Webhooks
from forewarn.core import access
from forewarn.core.model.webhook import Webhook, WebhookId

T = TypeVar("T")


class Run(Protocol):
    """Runs a use case on the one thread that runs all of them."""

    async def __call__(self, job: Callable[[], T], /) -> T:
        """Return the job's answer once its effect can be seen; its errors come through."""
        ...


class Timekeeper(Protocol):
    """Tells service time, and turns it if the clock is a manual one."""

    @property
    def kind(self) -> str:
        """The clock's name, as `--clock` takes it."""
        ...

    @property
    def speed(self) -> float:
        """Seconds of service time for each second of the world."""
        ...

    def now(self) -> datetime:
        """Return the present moment."""
        ...

    def advance(self, seconds: float, *, by: str) -> None:
        """Turn the clock and do all that falls due; Conflict unless it is a manual one."""
        ...


class Pushing(Protocol):
    """Pushes records to webhooks."""

    def next_try(self, id_: WebhookId, /) -> float | None:
        """Say in how many real seconds a failing webhook is tried again; None if it is not failing."""
        ...

    async def try_out(self, webhook: Webhook, /) -> str | None:
        """Call a webhook with something that is no record; returns what went wrong."""
        ...


class Probes(Protocol):
    """What the server knows about its own health."""

    def unhealthy(self) -> str | None:
        """Say why the service does not work, so that it should be restarted; None if it does."""
        ...

    def unready(self) -> str | None:
        """Say why requests should go elsewhere for now; None if they need not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """How the API behaves."""

    names: tuple[str, ...] = ()  # that a Host header may give besides an address and localhost
    # The declaration of a hundred thousand machines must fit.
    body_bytes: int = 64 * 1024 * 1024
    # Of the stream, in real seconds. Sooner than proxies give up on a silent connection.
    heartbeat: float = 15.0
    # A reader that has taken nothing for so long is cut off; it can resume.
    patience: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All that endpoints use."""

    plane: Plane
    views: Views
    tail: Tail | ProjectTail
    webhooks: Webhooks
    pushing: Pushing
    tokens: Tokens
    rollouts: Rollouts
    rehearsals: Rehearsals
    timekeeper: Timekeeper
    run: Run
    probes: Probes
    guest_counters: Callable[[], Mapping[str, float]] = dict  # for the metrics, by name


async def _all_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _services(request: Request) -> Services:
    """Give what the caller may reach: one project's things, or all."""
    services, caller = await _all_services(request), _known(request)
    return replace(
        services,
        plane=services.plane.within(caller.project),
        views=services.views.within(caller.project),
        tail=services.tail.within(caller.project),
        webhooks=services.webhooks.within(caller.project),
        rehearsals=services.rehearsals.within(caller.project),
    )


async def _caller(request: Request) -> str:
    return _known(request).name


async def _known_caller(request: Request) -> access.Caller:
    return _known(request)


def _known(request: Request) -> access.Caller:
    """Give who asks, as the door has found out."""
    caller: access.Caller = request.state.caller
    return caller


# What the caller may reach; for an endpoint that needs no token, what there is.
Service = Annotated[Services, Depends(_services)]
OpenService = Annotated[Services, Depends(_all_services)]

# Who asks, as records name them.
Caller = Annotated[str, Depends(_caller)]
# The same with role and project.
KnownCaller = Annotated[access.Caller, Depends(_known_caller)]
