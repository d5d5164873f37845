"""Scheduled Events for any fleet of virtual machines.

This package exports the clients for programs inside a machine, `GuestClient` and `AsyncGuestClient`, with the
values that they return and the exceptions that they raise. Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from forewarn.lazy import lazily

if TYPE_CHECKING:
    from forewarn.sdk.async_client import AsyncGuestClient as AsyncGuestClient
    from forewarn.sdk.blocking_client import GuestClient as GuestClient
    from forewarn.sdk.documents import Document as Document
    from forewarn.sdk.documents import Event as Event
    from forewarn.sdk.documents import UnreadableEvent as UnreadableEvent
    from forewarn.sdk.guest_errors import Closed as Closed
    from forewarn.sdk.guest_errors import EndpointRefused as EndpointRefused
    from forewarn.sdk.guest_errors import EndpointUnavailable as EndpointUnavailable
    from forewarn.sdk.guest_errors import GuestError as GuestError
    from forewarn.sdk.guest_errors import NoEndpoint as NoEndpoint
    from forewarn.sdk.guest_errors import Unreadable as Unreadable
    from forewarn.sdk.instances import Instance as Instance

_HOMES = {
    "AsyncGuestClient": "forewarn.sdk.async_client",
    "GuestClient": "forewarn.sdk.blocking_client",
    "Document": "forewarn.sdk.documents",
    "Event": "forewarn.sdk.documents",
    "UnreadableEvent": "forewarn.sdk.documents",
    "Closed": "forewarn.sdk.guest_errors",
    "GuestError": "forewarn.sdk.guest_errors",
    "NoEndpoint": "forewarn.sdk.guest_errors",
    "EndpointRefused": "forewarn.sdk.guest_errors",
    "EndpointUnavailable": "forewarn.sdk.guest_errors",
    "Unreadable": "forewarn.sdk.guest_errors",
    "Instance": "forewarn.sdk.instances",
}

__getattr__, __dir__ = lazily(globals(), _HOMES)
