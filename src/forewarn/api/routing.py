"""How an endpoint is declared: who may call it, what it answers with, and which errors it may send."""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, TypeAlias, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from forewarn.api.errors import documented
from forewarn.core.access import Right, check
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.coding import write_body

Body: TypeAlias = ApiAnswer | Page[ApiAnswer]
Handler: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
H = TypeVar("H", bound=Handler)
B = TypeVar("B", bound=Body)


@dataclass(frozen=True, slots=True)
class WithStatus(Generic[B]):
    """An answer that is not sent with the endpoint's usual status."""

    body: B
    status: int


class ApiRoute(APIRoute):
    """A route that refuses callers who have no right to it, before anything of their body is read."""

    def __init__(
        self, path: str, handler: Handler, *, right: Right, also: Mapping[int, str] | None = None, **more: Any
    ) -> None:
        """Take the right that callers need, and what statuses beside the usual one mean."""
        also = also or {}
        self.right = right
        # Of what kind the answer is, for the OpenAPI document, and with which statuses it is sent as JSON.
        self.answer: Any = inspect.signature(handler).return_annotation
        other = isinstance(self.answer, type) and issubclass(self.answer, Response)
        self.successes = () if other else (more["status_code"], *also)
        more["responses"] |= {status: {"description": meaning} for status, meaning in also.items()}
        super().__init__(path, _sending(handler, more["status_code"]), response_model=None, **more)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Make what answers."""
        answer = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            # Those who need no token have no caller.
            caller = getattr(request.state, "caller", None)
            if caller is not None:
                check(caller, self.right)
            return await answer(request)

        return guarded


class ApiRouter(APIRouter):
    """The endpoints about one thing."""

    def __init__(self, tag: str) -> None:
        """Take the name that the OpenAPI document groups them by."""
        super().__init__()
        self._tag = tag

    def call(
        self,
        call: str,
        summary: str,
        *,
        right: Right | None = None,
        status: int = 200,
        errors: tuple[int, ...] = (),
        **more: Any,
    ) -> Callable[[H], H]:
        """Let a function answer a call, `GET /v1/machines`: what it returns is sent with this status.

        A call that names no right is not for the people of a project: it may show, or do, more than is
        theirs. `errors` are the statuses it may refuse with; `more` is as `ApiRoute` and FastAPI have it.
        """
        method, path = call.split()
        default = Right.SURVEY if method == "GET" else Right.RUN

        def declare(handler: H) -> H:
            self.routes.append(
                ApiRoute(
                    path,
                    handler,
                    right=right or default,
                    methods=[method],
                    summary=summary,
                    status_code=status,
                    tags=[self._tag],
                    responses=documented(*errors),
                    **more,
                )
            )
            return handler

        return declare


def _sending(handler: Handler, status: int) -> Handler:
    """Make of a function that returns an answer one that returns the response."""

    @wraps(handler)
    async def send(*args: Any, **given: Any) -> Response:
        answer = await handler(*args, **given)
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, WithStatus):
            return JSONResponse(write_body(answer.body), status_code=answer.status)
        return JSONResponse(write_body(answer), status_code=status)

    return send
