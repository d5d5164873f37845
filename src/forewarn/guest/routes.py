"""What is offered under which path, and the checks that a request passes.

They come in the order of the contract: Host, X-Forwarded-For (`refusal_of`), then caller and rate, which the
service knows, then path, method, version and Metadata (`plan_of`). Nothing else of a request is looked at
before its caller and rate are decided: a stranger's query costs no more than a plain one.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl

from forewarn.guest.requests import (
    Approve,
    AskInstance,
    AskNetwork,
    Defer,
    ListVersions,
    Plan,
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
# By whether versions that are not generally available are offered.
VERSION_INVALID = {preview: Refusal(status=400, body=body) for preview, body in azure.VERSION_INVALID.items()}
INSTANCE_VERSION_INVALID = Refusal(status=400, body=azure.version_invalid(NEWEST_VERSIONS))
VERSION_UNKNOWN = Refusal(status=404, body=azure.VERSION_UNKNOWN)
TOO_MANY_KEYS = Refusal(status=400, body=azure.error("Bad request. There are too many query keys"))
KEY_REPEATED = Refusal(status=400, body=azure.error("Bad request. A query key is given more than once"))
NO_HEADER = Refusal(status=400, body=azure.NO_HEADER)
LEAF_IS_TEXT = Refusal(status=400, body=azure.error("Bad request. This value needs format=text"))
OBJECT_IS_JSON = Refusal(status=400, body=azure.error("Bad request. This value needs format=json"))
# Credential libraries retry a 404 for long; a 400 tells them at once that there is nothing here.
NO_IDENTITY = Refusal(
    status=400, body=azure.compact({"error": "invalid_request", "error_description": "Identity not found"})
)

_INSTANCE = "/metadata/instance"
# Clients send two or three.
MOST_KEYS = 32

Query: TypeAlias = Mapping[str, str]
Handler: TypeAlias = Callable[[Request, Query, EndpointSettings], Plan]


def refusal_of(request: Request, settings: EndpointSettings) -> Refusal | RequestFault | None:
    """Return why a request is refused whoever asks; None if that depends on the caller."""
    hosts = [host.decode("latin-1") for host in request.all(b"host")]
    if len(hosts) > 1 or (not hosts and request.http11):
        return BAD_HOST
    authority, _, _ = _split(request.target.decode("latin-1"))
    if authority is not None:
        hosts.append(authority)
    if not all(is_expected(host, settings.names) for host in hosts):
        return BAD_HOST if all(map(is_readable, hosts)) else UNREADABLE_HOST
    return PROXIED if request.all(b"x-forwarded-for") else None


def plan_of(request: Request, settings: EndpointSettings) -> Plan:
    """Return what a request of a known machine asks for, or why it is refused."""
    _, path, query = _split(request.target.decode("latin-1"))
    methods = _route(path, settings)
    if methods is None:
        return NOT_FOUND
    handler = methods.get(request.method)
    if handler is None:
        return _not_allowed(methods)
    return _with_query(handler, request, query, settings, repeated=_version_refusal(path, settings))


def _version_refusal(path: str, settings: EndpointSettings) -> Refusal:
    """Return how a version is refused there: each category offers its own."""
    return INSTANCE_VERSION_INVALID if _is_instance(path) else VERSION_INVALID[settings.preview]


def _is_instance(path: str) -> bool:
    return path == _INSTANCE or path.startswith(f"{_INSTANCE}/")


def _split(target: str) -> tuple[str | None, str, str]:
    """Take a request target apart: whom it names (absolute form only), the path, the query."""
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
        return ANYTHING_REFUSED
    if _is_instance(path):
        return _instance_route(path, settings.instance)
    return None


def _instance_route(path: str, detail: InstanceMetadata) -> Mapping[bytes, Handler] | None:
    if detail is InstanceMetadata.OFF:
        return None
    match path.split("/")[3:]:
        case []:
            return {b"GET": _ask_whole}
        case ["compute"]:
            return {b"GET": _ask_all}
        case ["compute", leaf]:
            return _leaf_route(leaf, detail)
        case ["network", *parts] if detail is InstanceMetadata.FULL:
            return {b"GET": lambda request, query, settings: _ask_network(request, query, tuple(parts))}
        case _:
            return None


def _leaf_route(leaf: str, detail: InstanceMetadata) -> Mapping[bytes, Handler] | None:
    field = field_named(leaf)
    if field is None or (detail is InstanceMetadata.NAME and field != "name"):
        return None
    return {b"GET": lambda request, query, settings: _ask_field(request, query, field)}


def _not_allowed(methods: Mapping[bytes, Handler]) -> Refusal:
    allow = b"Allow: " + b", ".join(methods) + b"\r\n"
    return Refusal(status=405, body=azure.error("Method not allowed"), headers=allow)


def _with_query(
    handler: Handler, request: Request, query: str, settings: EndpointSettings, *, repeated: Refusal
) -> Plan:
    """Read the query, and ask the handler what it makes of it."""
    if query.count("&") >= MOST_KEYS:
        return TOO_MANY_KEYS
    pairs = [(key.lower(), value) for key, value in parse_qsl(query, keep_blank_values=True)]
    given = dict(pairs)
    if len(given) == len(pairs):
        return handler(request, given, settings)
    versions = [value for key, value in pairs if key == "api-version"]
    return repeated if len(versions) > 1 else KEY_REPEATED


def _poll(request: Request, query: Query, settings: EndpointSettings) -> Plan:
    version = _version(query, settings)
    if isinstance(version, Refusal):
        return version
    if azure.VERSIONS[version].needs_header and not _has_header(request):
        return NO_HEADER
    return poll_of(request, version=version, longest=settings.limits.wait_seconds)


def _approve(request: Request, query: Query, settings: EndpointSettings) -> Plan:
    return _refusal_of_post(request, query, settings) or Approve(request.body)


def _defer(request: Request, query: Query, settings: EndpointSettings) -> Plan:
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


def _versions(request: Request, query: Query, settings: EndpointSettings) -> Plan:
    return ListVersions() if _has_header(request) else NO_HEADER


def _refuse_identity(request: Request, query: Query, settings: EndpointSettings) -> Plan:
    return NO_IDENTITY


def _ask_all(request: Request, query: Query, settings: EndpointSettings) -> Plan:
    return _checked(request, query, form="json") or AskInstance()


def _ask_whole(request: Request, query: Query, settings: EndpointSettings) -> Plan:
    return _checked(request, query, form="json") or AskInstance(whole=True)


def _ask_field(request: Request, query: Query, field: str) -> Plan:
    form = "json" if field == "tagsList" else "text"
    return _checked(request, query, form=form) or AskInstance(field)


def _ask_network(request: Request, query: Query, path: tuple[str, ...]) -> Plan:
    form = "text" if path and path[-1] in NETWORK_TEXTS else "json"
    return _checked(request, query, form=form) or AskNetwork(path)


def _checked(request: Request, query: Query, *, form: str) -> Refusal | None:
    """Check what all of instance metadata asks of a request; None if it may go on."""
    version = query.get("api-version", "")
    if not azure.is_version_date(version):
        return INSTANCE_VERSION_INVALID
    if version < OLDEST_VERSION:
        return VERSION_UNKNOWN
    if not _has_header(request):
        return NO_HEADER
    if query.get("format", "json").lower() != form:
        return LEAF_IS_TEXT if form == "text" else OBJECT_IS_JSON
    return None


ROUTES: Mapping[str, Mapping[bytes, Handler]] = {
    "/metadata/scheduledevents": {b"GET": _poll, b"POST": _approve},
    # Beyond Azure: a guest asks for more time, once.
    "/metadata/scheduledevents/defer": {b"POST": _defer},
    "/metadata/versions": {b"GET": _versions},
}
ANYTHING_REFUSED: Mapping[bytes, Handler] = dict.fromkeys(
    (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH"), _refuse_identity
)


def poll_of(request: Request, *, version: int, longest: int) -> Poll:
    """Read what a GET of the document makes its answer depend on."""
    tags = request.listed(b"if-none-match")
    if not tags:
        return Poll(version=version)
    return Poll(
        version=version,
        match=frozenset(_bare(tag) for tag in tags if tag != b"*"),
        match_any=b"*" in tags,
        wait=_wait(request, longest=longest),
        plain=False,
    )


def _bare(tag: bytes) -> bytes:
    """Take the quotes off: clients send entity tags with and without them."""
    return tag.removeprefix(b"W/").strip(b'"')


def _wait(request: Request, *, longest: int) -> int | None:
    """Find for how long the caller prefers to wait; the first such preference counts (RFC 7240)."""
    for preference in request.listed(b"prefer"):
        name, _, value = preference.partition(b";")[0].partition(b"=")
        if name.strip().lower() != b"wait":
            continue
        digits = value.strip().strip(b'"')
        if not digits.isdigit():
            return None
        # More digits than any allowed wait has: no need to read them.
        return longest if len(digits) > len(str(longest)) + 1 else min(int(digits), longest)
    return None
