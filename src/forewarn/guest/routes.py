"""The routes of the guest endpoint, and the checks of a request.

The checks run in the order of the contract. First come Host and X-Forwarded-For (`refusal_of`), then the
caller and its rate (`RequestHandler.admit`), then path, method, version and Metadata (`operation_of`). The
query is parsed only after the caller and its rate are checked, so an unknown caller cannot make it costly.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl

from forewarn.guest.guest_requests import (
    Approve,
    Defer,
    GetInstance,
    GetNetwork,
    ListVersions,
    Operation,
    Poll,
    Refusal,
    Request,
    RequestFault,
)
from forewarn.guest.settings import EndpointSettings
from forewarn.wire import azure
from forewarn.wire.authority import is_expected, is_readable
from forewarn.wire.instance import (
    NETWORK_TEXTS,
    NEWEST_VERSIONS,
    OLDEST_VERSION,
    InstanceMetadata,
    field_named,
)

BAD_HOST = Refusal(
    status=400, body=azure.error("Bad request. The Host header names no address of this service")
)
UNREADABLE_HOST = RequestFault(400, "Bad request. The Host header cannot be read")
PROXIED = Refusal(status=400, body=azure.error("Bad request. Requests through a proxy are refused"))
NOT_FOUND = Refusal(status=404, body=azure.NOT_FOUND)
# By whether preview versions are offered.
VERSION_INVALID = {preview: Refusal(status=400, body=body) for preview, body in azure.VERSION_INVALID.items()}
INSTANCE_VERSION_INVALID = Refusal(status=400, body=azure.version_invalid(NEWEST_VERSIONS))
VERSION_UNKNOWN = Refusal(status=404, body=azure.VERSION_UNKNOWN)
TOO_MANY_KEYS = Refusal(status=400, body=azure.error("Bad request. There are too many query keys"))
KEY_REPEATED = Refusal(status=400, body=azure.error("Bad request. A query key is given more than once"))
NO_HEADER = Refusal(status=400, body=azure.NO_HEADER)
LEAF_IS_TEXT = Refusal(status=400, body=azure.error("Bad request. This value needs format=text"))
OBJECT_IS_JSON = Refusal(status=400, body=azure.error("Bad request. This value needs format=json"))
# Credential libraries retry a 404 many times, but give up at once on a 400.
NO_IDENTITY = Refusal(
    status=400, body=azure.compact({"error": "invalid_request", "error_description": "Identity not found"})
)

_INSTANCE = "/metadata/instance"
# Clients send two or three.
MOST_KEYS = 32

Query: TypeAlias = Mapping[str, str]
Handler: TypeAlias = Callable[[Request, Query, EndpointSettings], Operation]


def refusal_of(request: Request, settings: EndpointSettings) -> Refusal | RequestFault | None:
    """Return why a request is refused for every caller; None if it passes."""
    hosts = [host.decode("latin-1") for host in request.all(b"host")]
    if len(hosts) > 1 or (not hosts and request.http11):
        return BAD_HOST
    authority, _, _ = _split(request.target.decode("latin-1"))
    if authority is not None:
        hosts.append(authority)
    names = tuple(name.lower() for name in settings.names)
    if not all(is_expected(host, names) for host in hosts):
        return BAD_HOST if all(map(is_readable, hosts)) else UNREADABLE_HOST
    return PROXIED if request.all(b"x-forwarded-for") else None


def operation_of(request: Request, settings: EndpointSettings) -> Operation:
    """Return the operation that a request asks for, or why it is refused."""
    _, path, query = _split(request.target.decode("latin-1"))
    methods = _route(path, settings)
    if methods is None:
        return NOT_FOUND
    handler = methods.get(request.method)
    if handler is None:
        allow = b"Allow: " + b", ".join(methods) + b"\r\n"
        return Refusal(status=405, body=azure.error("Method not allowed"), headers=allow)
    if query.count("&") >= MOST_KEYS:
        return TOO_MANY_KEYS
    pairs = [(key.lower(), value) for key, value in parse_qsl(query, keep_blank_values=True)]
    given = dict(pairs)
    if len(given) == len(pairs):
        return handler(request, given, settings)
    if sum(key == "api-version" for key, _ in pairs) > 1:
        return INSTANCE_VERSION_INVALID if _is_instance(path) else VERSION_INVALID[settings.preview]
    return KEY_REPEATED


def _is_instance(path: str) -> bool:
    return path == _INSTANCE or path.startswith(f"{_INSTANCE}/")


def _split(target: str) -> tuple[str | None, str, str]:
    """Split a request target into authority (absolute form only), path and query."""
    authority = None
    if target[:7].lower() == "http://":
        rest = target[7:]
        end = min((rest.find(mark) for mark in "/?" if mark in rest), default=len(rest))
        authority, target = rest[:end], rest[end:]
    path, _, query = target.partition("?")
    return authority, path.lower().removesuffix("/"), query


def _route(path: str, settings: EndpointSettings) -> Mapping[bytes, Handler] | None:
    if path in ROUTES:
        return ROUTES[path]
    if f"{path}/".startswith(("/metadata/identity/", "/metadata/attested/")):
        return NO_IDENTITY_ROUTE
    if _is_instance(path):
        return _instance_route(path, InstanceMetadata(settings.instance))
    return None


def _instance_route(path: str, detail: InstanceMetadata) -> Mapping[bytes, Handler] | None:
    if detail is InstanceMetadata.OFF:
        return None
    match path.split("/")[3:]:
        case []:
            return {b"GET": _metadata_handler(GetInstance(whole=True), form="json")}
        case ["compute"]:
            return {b"GET": _metadata_handler(GetInstance(), form="json")}
        case ["compute", leaf]:
            field = field_named(leaf)
            if field is None or (detail is InstanceMetadata.NAME and field != "name"):
                return None
            form = "json" if field == "tagsList" else "text"
            return {b"GET": _metadata_handler(GetInstance(field), form=form)}
        case ["network", *path_in] if detail is InstanceMetadata.FULL:
            form = "text" if path_in and path_in[-1] in NETWORK_TEXTS else "json"
            return {b"GET": _metadata_handler(GetNetwork(tuple(path_in)), form=form)}
        case _:
            return None


def _metadata_handler(operation: Operation, *, form: str) -> Handler:
    """Make the handler of instance metadata in a format."""

    def handle(request: Request, query: Query, _settings: EndpointSettings) -> Operation:
        version = query.get("api-version", "")
        if not azure.is_version_date(version):
            return INSTANCE_VERSION_INVALID
        if version < OLDEST_VERSION:
            return VERSION_UNKNOWN
        if not _has_header(request):
            return NO_HEADER
        if query.get("format", "json").lower() != form:
            return LEAF_IS_TEXT if form == "text" else OBJECT_IS_JSON
        return operation

    return handle


def _poll(request: Request, query: Query, settings: EndpointSettings) -> Operation:
    version = _version(query, settings)
    if isinstance(version, Refusal):
        return version
    if azure.VERSIONS[version].needs_header and not _has_header(request):
        return NO_HEADER
    return poll_of(request, version=version, longest=settings.limits.wait_seconds)


def _approve(request: Request, query: Query, settings: EndpointSettings) -> Operation:
    return _refusal_of_post(request, query, settings) or Approve(request.body)


def _defer(request: Request, query: Query, settings: EndpointSettings) -> Operation:
    return _refusal_of_post(request, query, settings) or Defer(request.body)


def _refusal_of_post(request: Request, query: Query, settings: EndpointSettings) -> Refusal | None:
    version = _version(query, settings)
    if isinstance(version, Refusal):
        return version
    enforced = azure.VERSIONS[version].needs_header and not settings.lenient_header_on_post
    return NO_HEADER if enforced and not _has_header(request) else None


def _version(query: Query, settings: EndpointSettings) -> int | Refusal:
    name = query.get("api-version", "")
    if not azure.is_version_date(name):
        return VERSION_INVALID[settings.preview]
    index = azure.VERSION_INDEX.get(name)
    if index is None or (azure.VERSIONS[index].preview and not settings.preview):
        return VERSION_UNKNOWN
    return index


def _has_header(request: Request) -> bool:
    values = request.all(b"metadata")
    return bool(values) and all(value.strip().lower() == b"true" for value in values)


def _versions(request: Request, query: Query, settings: EndpointSettings) -> Operation:
    return ListVersions() if _has_header(request) else NO_HEADER


def _refuse_identity(request: Request, query: Query, settings: EndpointSettings) -> Operation:
    return NO_IDENTITY


ROUTES: Mapping[str, Mapping[bytes, Handler]] = {
    "/metadata/scheduledevents": {b"GET": _poll, b"POST": _approve},
    # An extension of Azure's contract: a guest may ask for more time once.
    "/metadata/scheduledevents/defer": {b"POST": _defer},
    "/metadata/versions": {b"GET": _versions},
}
NO_IDENTITY_ROUTE: Mapping[bytes, Handler] = dict.fromkeys(
    (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH"), _refuse_identity
)


def poll_of(request: Request, *, version: int, longest: int) -> Poll:
    """Read the conditions of a GET of the document."""
    tags = request.listed(b"if-none-match")
    if not tags:
        return Poll(version=version)
    return Poll(
        version=version,
        # Clients send entity tags with and without quotes.
        match=frozenset(tag.removeprefix(b"W/").strip(b'"') for tag in tags if tag != b"*"),
        match_any=b"*" in tags,
        wait=_wait(request, longest=longest),
        plain=False,
    )


def _wait(request: Request, *, longest: int) -> int | None:
    """Return how long the caller prefers to wait; the first such preference counts (RFC 7240)."""
    for preference in request.listed(b"prefer"):
        name, _, value = preference.partition(b";")[0].partition(b"=")
        if name.strip().lower() != b"wait":
            continue
        digits = value.strip().strip(b'"')
        if not digits.isdigit():
            return None
        # A number with more digits than the longest wait is not parsed.
        return longest if len(digits) > len(str(longest)) + 1 else min(int(digits), longest)
    return None
