"""`webhook`: an HTTP request for each side of an event."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from forewarn.agent.facts import NUMBERS, checked_template, facts_of, filled, mapped
from forewarn.agent.handlers.kinds import Declared, url
from forewarn.agent.handling import WORK, Again, Never, Outcome, Ready, Side, Task
from forewarn.core.errors import Invalid
from forewarn.core.text_formats import on_one_line
from forewarn.wire import fields
from forewarn.wire.texts import shown

METHODS = ("POST", "PUT", "PATCH", "GET", "DELETE")
# The timeout of a request.
ANSWER_SECONDS = 10.0
FIRST_REDIRECT = 300
# After these statuses, and after server errors, the request is tried again.
RETRIED = frozenset({408, 409, 423, 425, 429})
FIRST_SERVER_ERROR = 500
LONGEST_PAUSE = 300.0
DEFAULT_BODY = {"machine": "${machine}", "side": "${side}", "seconds_left": "${seconds_left}"}


def url_template(value: object) -> str:
    """Read a URL with placeholders."""
    return checked_template(url(value))


def _method(value: object) -> str:
    if value not in METHODS:
        raise Invalid(f"expected {', '.join(METHODS[:-1])} or {METHODS[-1]}, got {shown(value)}")
    return str(value)


def _headers(value: object) -> dict[str, str]:
    found = fields.table(value)
    for name, each in found.items():
        if not isinstance(each, str) or not each.isprintable() or not name.isascii():
            raise Invalid(f"{name}: expected one line of text")
    return dict(mapped(found, checked_template))


def body(value: object) -> object:
    """Read a text or a JSON structure with placeholders."""
    return mapped(value, checked_template)


def sides(value: object) -> tuple[Any, ...]:
    """Read the list of sides that send a request."""
    return tuple(fields.choice(list(WORK))(each) for each in fields.sequence(value))


READERS = {
    "url": url_template,
    "recover_url": url_template,
    "method": _method,
    "headers": _headers,
    "body": body,
    "recover_body": body,
    "sides": sides,
}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Create a handler with a request for each side."""
    fields.require(options, {"url": "it"}, "")
    urls = {Side.PREPARE: options["url"], Side.RECOVER: options.get("recover_url", options["url"])}
    prepare_body = options.get("body")
    bodies = {Side.PREPARE: prepare_body, Side.RECOVER: options.get("recover_body", prepare_body)}
    made = WebhookHandler(
        requests={
            side: Template(
                method=options.get("method", "POST"),
                url=urls[side],
                headers=options.get("headers", {}),
                body=bodies[side],
            )
            for side in options.get("sides", WORK)
        }
    )
    return [Declared(does=made)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A request with placeholders."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    async def send(self, task: Task) -> Outcome:
        """Fill in the placeholders and send the request."""
        import httpx

        facts = facts_of(task)
        content, kind = _content(self.body, facts)
        own = mapped(filled(self.headers, facts), _header)
        headers = {"Content-Type": kind, "User-Agent": "forewarn", **own}
        try:
            async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as client:
                answer = await client.request(
                    self.method, _url(self.url, facts), content=content, headers=headers
                )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The error's text may contain the URL, which may be secret.
            return Again(f"{self.host} cannot be reached ({type(error).__name__})")
        return _outcome(answer.status_code, answer.headers.get("retry-after"), self.host)

    @property
    def host(self) -> str:
        """The host of the URL, which is not secret."""
        return str(urlsplit(self.url).hostname)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookHandler:
    """Sends a request for each side."""

    requests: Mapping[Side, Template]
    wording: str = "sends a {method} to {host}"

    async def prepare(self, task: Task) -> Outcome:
        """Send the request of the task's side."""
        request = self.requests.get(task.side)
        return Ready() if request is None else await request.send(task)

    recover = prepare

    def describe(self, side: Side) -> str:
        """Describe the request."""
        request = self.requests.get(side)
        return "" if request is None else self.wording.format(method=request.method, host=request.host)

    def problems(self) -> Sequence[str]:
        """Return no problems: an unreachable server may be back in time."""
        return ()


def _url(template: str, facts: Mapping[str, str]) -> str:
    from urllib.parse import quote

    return str(filled(template, {name: quote(value, safe="") for name, value in facts.items()}))


def _header(value: str) -> str:
    """Make a text from the endpoint valid in a header."""
    return on_one_line(value).encode("ascii", "backslashreplace").decode()


def _content(template: Any, facts: Mapping[str, str]) -> tuple[bytes, str]:
    if isinstance(template, str):
        return str(filled(template, facts)).encode(), "text/plain; charset=utf-8"
    if template is None:
        content = {**_with_numbers(DEFAULT_BODY, facts), "event": json.loads(facts["event"])}
    else:
        content = _with_numbers(template, facts)
    return json.dumps(content, ensure_ascii=False).encode(), "application/json"


def _with_numbers(template: Any, facts: Mapping[str, str]) -> Any:
    """Fill in a structure; a placeholder of a number becomes a number, or null if unknown."""

    def fill(text: str) -> Any:
        name = text.removeprefix("${").removesuffix("}")
        if name not in NUMBERS or text != f"${{{name}}}":
            return filled(text, facts)
        return int(facts[name]) if facts[name] else None

    return mapped(template, fill)


def _outcome(status: int, retry_after: str | None, host: str) -> Outcome:
    if status < FIRST_REDIRECT:
        return Ready(f"{host} answered {status}")
    if status in RETRIED or status >= FIRST_SERVER_ERROR:
        named = (
            float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
        )
        return Again(f"{host} answered {status}", None if named is None else min(named, LONGEST_PAUSE))
    return Never(f"{host} answered {status}")
