"""What a server sends back: an answer, or an error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    import httpx

    from forewarn.wire.answers.answer import ApiAnswer, Page

V_co = TypeVar("V_co", covariant=True)
A = TypeVar("A", bound="ApiAnswer")
Body: TypeAlias = Mapping[str, Any] | None

FIRST_ERROR = 400
FORBIDDEN, NOT_FOUND, CONFLICT, TOO_MANY, UNAVAILABLE = 403, 404, 409, 429, 503
# What a proxy says when it has passed a call on, and got no answer that it could use.
NO_ANSWER_BEHIND = (502, 504)
# As many as the server gives at once.
PAGE = 1000

ADVICE = "Start one with `forewarn serve`, or set FOREWARN_SERVER (or --server) to where it is."


ABOUT_CERTIFICATES = (
    "Set FOREWARN_CA to a file (PEM) with the certificate of who signed it, or with its own if nobody did."
)


class RequestRefused(Exception):
    """The server said no; the message is its own, and so is the status, if it was asked at all."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "Refused",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code  # the API's word for this kind of refusal
        self.retry_after = retry_after  # the seconds after which the server wants to be asked again


class ServerUnreachable(Exception):
    """There is no server, or nothing that talks like one."""

    def __init__(self, message: str, *, connection_broke: bool = False, may_have_changed: bool = False) -> None:
        super().__init__(message)
        self.connection_broke = connection_broke  # whether it was there, and may be back soon
        self.may_have_changed = may_have_changed  # what changes something


class OutcomeUnknown(ServerUnreachable):
    """A call that changes something was sent, and nobody said what has become of it: it may still happen."""


class AnswerNotUnderstood(Exception):
    """A server of another version has answered, and what it sent lacks something that is needed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[V_co]):
    """An answer: `json` is what the server sent, with keys that only a later version knows too."""

    json: Mapping[str, Any]
    url: str
    read: Callable[[Mapping[str, Any]], V_co]

    @property
    def value(self) -> V_co:
        """The answer as a value; AnswerNotUnderstood if the server's version is another."""
        try:
            return self.read(self.json)
        except (KeyError, TypeError, ValueError) as error:
            lacks = f"it sent no {error}" if isinstance(error, KeyError) else f"{error}"
            raise AnswerNotUnderstood(
                f"the server at {self.url} is of a version that this command does not understand: {lacks}\n"
                "It did what was asked. Use the command of its version; --json shows what it sent."
            ) from None


def reply_of(sent: Mapping[str, Any], answer: type[A], *, url: str) -> Reply[A]:
    """Return the reply that has one answer."""
    return Reply(json=sent, url=url, read=lambda body: _coding().read_body(answer, body))


def reply_of_page(sent: Mapping[str, Any], item: type[A], *, url: str) -> "Reply[Page[A]]":
    """Return the reply that has a page of answers."""
    return Reply(json=sent, url=url, read=lambda body: _coding().read_page(item, body))


def _coding() -> Any:
    """Load the codec once a value is wanted: JSON is passed on without it."""
    from forewarn.wire.answers import coding

    return coding


def read_reply(url: str, sent: "httpx.Response") -> dict[str, Any]:
    """Return what a server has sent; RequestRefused if that is an error."""
    import json

    status = sent.status_code
    try:
        said = json.loads(sent.content)
        refused = status >= FIRST_ERROR
        message = said["error"]["message"] if refused else ""
        code = said["error"]["code"] if refused else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        connection_broke = status in NO_ANSWER_BEHIND
        raise ServerUnreachable(
            f"What answers at {url} is no forewarn server.\n{ADVICE}",
            connection_broke=connection_broke,
            may_have_changed=connection_broke and sent.request.method != "GET",
        ) from None
    if refused:
        wait = sent.headers.get("Retry-After", "")
        after = float(wait) if wait.isdigit() else None
        raise RequestRefused(message, status=status, code=code, retry_after=after)
    return dict(said)


def unreachable(url: str, error: Exception, *, method: str = "GET") -> ServerUnreachable:
    """Return the error for a server that does not answer a call."""
    import httpx

    if untrusted := _untrusted(error):
        return ServerUnreachable(
            f"The certificate that {url} shows is not trusted ({untrusted}).\n{ABOUT_CERTIFICATES}"
        )
    was_there = isinstance(error, httpx.RemoteProtocolError | httpx.NetworkError)
    connection_broke = was_there and not isinstance(error, httpx.ConnectError)
    is_slow = isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout)
    return ServerUnreachable(
        f"No server answers at {url} ({error}).\n{ADVICE}",
        connection_broke=connection_broke,
        may_have_changed=(connection_broke or is_slow) and method != "GET",
    )


def _untrusted(error: BaseException) -> str | None:
    """Return why a certificate was not trusted, if that is at the bottom of an error."""
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        cause = cause.__cause__ or cause.__context__
    return None


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query parameters, or the keys of a body, that are given."""
    return {name: value for name, value in values.items() if value is not None}
