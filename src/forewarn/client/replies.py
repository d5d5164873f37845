"""Replies of the server: answers and errors."""

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
# The statuses of a proxy that got no usable answer to a request.
NO_ANSWER_BEHIND = (502, 504)
# The largest page of the server.
PAGE = 1000

ADVICE = "Start one with `forewarn serve`, or set its address: FOREWARN_SERVER or --server."


ABOUT_CERTIFICATES = (
    "Set FOREWARN_CA to a file (PEM) with the certificate of the authority that signed it, or with the "
    "certificate itself if it is self-signed."
)


class RequestRefused(Exception):
    """The server refused a request, or the client did not send it; then `status` is None."""

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
        self.code = code  # the error code of the API
        self.retry_after = retry_after  # seconds


class ServerUnreachable(Exception):
    """No server answers, or something else does."""

    def __init__(
        self, message: str, *, connection_broke: bool = False, may_have_changed: bool = False
    ) -> None:
        super().__init__(message)
        self.connection_broke = connection_broke  # whether it answered before, so it may return soon
        self.may_have_changed = may_have_changed  # whether the request may have taken effect


class OutcomeUnknown(ServerUnreachable):
    """A request was sent without an answer: it may have taken effect, or may still."""


class AnswerNotUnderstood(Exception):
    """The answer lacks a key that this client needs, because the server has another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[V_co]):
    """An answer: `json` is the body that the server sent, including unknown keys."""

    json: Mapping[str, Any]
    url: str
    read: Callable[[Mapping[str, Any]], V_co]

    @property
    def value(self) -> V_co:
        """The answer as a value; AnswerNotUnderstood if it lacks something."""
        try:
            return self.read(self.json)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"its answer has no {error}" if isinstance(error, KeyError) else f"{error}"
            raise AnswerNotUnderstood(
                f"the server at {self.url} has a version that this command does not support: {reason}\n"
                "It has executed the request. Use the command of its version; --json shows its answer."
            ) from None


def reply_of(sent: Mapping[str, Any], answer: type[A], *, url: str) -> Reply[A]:
    """Return a reply with one answer."""
    return Reply(json=sent, url=url, read=lambda body: _coding().read_body(answer, body))


def reply_of_page(sent: Mapping[str, Any], item: type[A], *, url: str) -> "Reply[Page[A]]":
    """Return a reply with a page of answers."""
    return Reply(json=sent, url=url, read=lambda body: _coding().read_page(item, body))


def _coding() -> Any:
    """Import the codec, which only typed values need."""
    from forewarn.wire.answers import coding

    return coding


def read_reply(url: str, sent: "httpx.Response") -> dict[str, Any]:
    """Return the body of an answer; RequestRefused if it is an error."""
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
            f"The program that answers at {url} is not a forewarn server.\n{ADVICE}",
            connection_broke=connection_broke,
            may_have_changed=connection_broke and sent.request.method != "GET",
        ) from None
    if refused:
        wait = sent.headers.get("Retry-After", "")
        after = float(wait) if wait.isdigit() else None
        raise RequestRefused(message, status=status, code=code, retry_after=after)
    return dict(said)


def unreachable(url: str, error: Exception, *, method: str = "GET") -> ServerUnreachable:
    """Return the error for a server that does not answer."""
    import httpx

    if untrusted := _untrusted(error):
        return ServerUnreachable(
            f"The certificate of {url} is not trusted ({untrusted}).\n{ABOUT_CERTIFICATES}"
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
    """Return why a certificate was not trusted, if that caused the error."""
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        cause = cause.__cause__ or cause.__context__
    return None


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query parameters or the keys of a body that are not None."""
    return {name: value for name, value in values.items() if value is not None}
