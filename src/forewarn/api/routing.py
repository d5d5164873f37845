"""How an endpoint is declared: who may call it, what it answers with, and which errors it may send."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from forewarn.api.audit import changes_nothing
from forewarn.api.error_answers import status_of
from forewarn.api.inputs import Input, OpenedBy, Prepared, inputs
from forewarn.api.request_headers import REPEATED_HEADER, keyed_call
from forewarn.api.services import Services
from forewarn.clock import monotonic
from forewarn.control.idempotent_calls import IdempotentResponse, IdempotentCall
from forewarn.control.use_case import Alone, ForeseenUseCase
from forewarn.core.access import Right, check
from forewarn.core.errors import ForewarnError, Unavailable
from forewarn.core.scope import Scope
from forewarn.durations import Durations
from forewarn.store.batch import Transact, Transaction
from forewarn.store.prefetch import Prefetch
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.coding import write_body, write_json

Answer: TypeAlias = ApiAnswer | Page[ApiAnswer]
# A function, which the worker runs if the call is a POST, and one of the threads that read if it is a GET. Or
# a coroutine, which has either of them run what it needs.
Handler: TypeAlias = Callable[..., Any]
H = TypeVar("H", bound=Handler)
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class WithStatus(Generic[A]):
    """An answer with a status or an ETag of its own."""

    body: A
    status: int = 200
    tag: str | None = None  # its ETag


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What an endpoint answers with, and what the OpenAPI document says of it."""

    tag: str
    summary: str
    status: int = 200
    errors: tuple[int, ...] = ()  # the statuses it may refuse with
    also: Mapping[int, str] = field(default_factory=dict)  # what other statuses of the answer mean
    description: str | None = None  # the handler's docstring, unless it has none
    operation_id: str | None = None
    shown: bool = True
    # What the worker does once the answer is saved, and again when it is repeated: it may have been killed.
    finish: Callable[[Services, Mapping[str, Any]], None] | None = None
    # Refuses to answer a call again with this body if what it told of has ended meanwhile.
    check_repeated: Callable[[Services, Transaction, Mapping[str, Any]], None] | None = None
    # What is answered where nothing can be saved: it takes the call, if it has a key, and the handler's
    # arguments; None if there is nothing else to say than that. It may still happen as it was asked for.
    otherwise: Callable[..., "WithStatus[Any] | None"] | None = None
    # What answers instead where a body or query asks for a dry run: a function that only reads.
    dry_run: Handler | None = None
    # What is read before the worker's turn, so that it takes less of that: a function whose result the
    # handler gets where it takes something `Prepared`. None if that is refused: the handler says so.
    prepare: Handler | None = None
    # How an answer is sent that is more than its body; and what is sent, if not what the handler returns.
    sends: Callable[[Request, IdempotentResponse], Response] | None = None
    sent: Any = None
    # Which argument names the machine that it is about: calls that wait together are loaded for together.
    machine: str | None = None


class ApiRoute(Route):
    """A route that refuses callers who have no right to it, before anything of their body is read."""

    def __init__(self, call: str, handler: Handler, *, right: Right, promise: Promise) -> None:
        method, path = call.split()
        super().__init__(path, self._answer, name=handler.__name__)
        # A HEAD is answered where it is declared.
        self.method, self.methods = method, {method}
        self.handler = handler
        self.right = right
        self.promise = promise

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """Where the handler's arguments come from; found at its first call, not while the server starts."""
        return inputs(self.handler)

    @property
    def answer(self) -> Any:
        """The kind of what it answers with."""
        return self.promise.sent or inspect.signature(self.handler).return_annotation

    @property
    def operation(self) -> str:
        """What the OpenAPI document and the metrics call it."""
        return (self.promise.operation_id or self.name).replace("-", "_")

    async def _answer(self, request: Request) -> Response:
        """Answer a call, and count how long that took; of a stream, until it begins."""
        began, status = monotonic(), 0
        try:
            response = await self._respond(request)
        except Exception as error:
            status = status_of(error)
            raise
        else:
            status = response.status_code
            return response
        finally:
            if status:  # else its caller has gone
                durations: Durations = request.app.state.durations
                durations.note(self.operation, f"{status // 100}xx", seconds=monotonic() - began)

    async def _respond(self, request: Request) -> Response:
        # Those who need no token have no caller.
        caller = getattr(request.state, "caller", None)
        if caller is not None:
            check(caller, self.right)
        arguments = {name: await each.read(name, request) for name, each in self.inputs.items()}
        if self.promise.dry_run is not None and _asks_for_dry_run(arguments):
            return await self._try_out(request, self.promise.dry_run, arguments)
        if self.method == "POST":
            answered = await self._carry_out(request, arguments)
            response = self._sent(request, answered)
            if answered.again:
                response.headers[REPEATED_HEADER] = "true"
            return response
        if not inspect.iscoroutinefunction(self.handler):
            return await self._read(request, lambda: self.handler(**arguments))
        answer = await self.handler(**arguments)
        if isinstance(answer, Response):
            return answer
        return (
            self._response(answer)
            if self.promise.sends is None
            else self._sent(request, self._answered(answer))
        )

    async def _try_out(self, request: Request, dry_run: Handler, given: Mapping[str, Any]) -> Response:
        """Show what would be; `given` is what has been read of the request already."""
        changes_nothing(request.scope)
        arguments = await _arguments(request, dry_run, given)
        return await self._read(request, lambda: dry_run(**arguments))

    async def _with_prepared(
        self, request: Request, prepare: Handler, given: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Add what is read before the call's turn to its arguments."""
        services: Services = request.app.state.services
        arguments = await _arguments(request, prepare, given)
        try:
            found = await services.scoped(request.state.caller).read(lambda _: prepare(**arguments))
        except Unavailable:  # the worker would wait for the same database
            raise
        except ForewarnError:  # it may have been answered before, or be possible in its turn
            found = None
        prepared = (name for name, each in self.inputs.items() if isinstance(each, Prepared))
        return {**given, **dict.fromkeys(prepared, found)}

    async def _read(self, request: Request, show: Callable[[], Any]) -> Response:
        """Answer on one of the threads that read, in the caller's turn: to write much down takes time too."""
        services: Services = request.app.state.services

        def respond() -> Response:
            answer = show()
            return answer if isinstance(answer, Response) else self._response(answer)

        return await services.scoped(request.state.caller).read(lambda _: respond())

    def _sent(self, request: Request, answered: IdempotentResponse) -> Response:
        if self.promise.sends is not None:
            return self.promise.sends(request, answered)
        return Response(answered.body, answered.status, media_type=JSONResponse.media_type)

    async def _carry_out(self, request: Request, arguments: Mapping[str, Any]) -> IdempotentResponse:
        """Do what is asked for; with an Idempotency-Key once, however often it is sent."""
        services: Services = request.app.state.services
        mine = services.scoped(request.state.caller)
        run = mine.run_unscoped  # in the caller's turn
        call = await keyed_call(request)
        if self.promise.prepare is not None:
            arguments = await self._with_prepared(request, self.promise.prepare, arguments)
        if not inspect.iscoroutinefunction(self.handler):
            try:
                return await run(self._job(services, mine.scope, call, arguments))
            except Unavailable:
                otherwise = self._otherwise(call, arguments)
                if otherwise is None:
                    raise
                return otherwise
        # Nothing of it is in the store, so that there is nothing to save its answer with.
        known = await run(lambda tx: services.answering.find(tx, call)) if call else None
        if known:
            return known
        answered = self._answered(await self.handler(**arguments))
        if call is None:
            return answered
        return await run(lambda tx: services.answering.answer(tx, call, lambda: answered))

    def _otherwise(self, call: IdempotentCall | None, arguments: Mapping[str, Any]) -> IdempotentResponse | None:
        if self.promise.otherwise is None:
            return None
        given = {
            name: arguments[name] for name, each in self.inputs.items() if not isinstance(each, OpenedBy)
        }
        answer = self.promise.otherwise(call, **given)
        return None if answer is None else self._answered(answer)

    def _job(
        self, services: Services, scope: Scope, call: IdempotentCall | None, arguments: Mapping[str, Any]
    ) -> Callable[[Transaction], IdempotentResponse] | Alone[IdempotentResponse]:
        def job(tx: Transaction) -> IdempotentResponse:
            return self._work(services, tx, scope, call, arguments)

        finish = self.promise.finish
        if finish is not None:

            def alone(transact: Transact) -> IdempotentResponse:
                answered = transact(job)
                finish(services, json.loads(answered.body))
                return answered

            return Alone(alone)
        if self.promise.machine is not None:
            answer = None if call is None else call.saved_as
            machine = arguments[self.promise.machine]
            return ForeseenUseCase(job, Prefetch(machine=machine, project=scope.caller, answer=answer))
        return job

    def _work(
        self,
        services: Services,
        tx: Transaction,
        scope: Scope,
        call: IdempotentCall | None,
        arguments: Mapping[str, Any],
    ) -> IdempotentResponse:
        def work() -> IdempotentResponse:
            opened = {
                name: each.seen(tx, scope) for name, each in self.inputs.items() if isinstance(each, OpenedBy)
            }
            return self._answered(self.handler(**{**arguments, **opened}))

        answered = services.answering.answer(tx, call, work) if call else work()
        if answered.again and self.promise.check_repeated is not None:
            self.promise.check_repeated(services, tx, json.loads(answered.body))
        return answered

    def _answered(self, answer: Any) -> IdempotentResponse:
        response = self._response(answer)
        return IdempotentResponse(status=response.status_code, body=bytes(response.body))

    def _response(self, answer: Any) -> Response:
        if isinstance(answer, WithStatus):
            headers = None if answer.tag is None else {"ETag": answer.tag}
            return AnswerResponse(write_body(answer.body), status_code=answer.status, headers=headers)
        return AnswerResponse(write_body(answer), status_code=self.promise.status)


class AnswerResponse(JSONResponse):
    """An answer as JSON."""

    def render(self, content: Any) -> bytes:
        """Write the body."""
        return write_json(content)


async def _arguments(request: Request, handler: Handler, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function; `given` are those that have been read already."""
    return {
        name: given[name] if name in given else await each.read(name, request)
        for name, each in inputs(handler).items()
    }


def _asks_for_dry_run(arguments: Mapping[str, Any]) -> bool:
    return any(getattr(each, "dry_run", False) for each in arguments.values())


class ApiRouter:
    """The endpoints about one thing."""

    def __init__(self, tag: str) -> None:
        """Take the name that the OpenAPI document groups them by."""
        self.routes: list[ApiRoute] = []
        self._tag = tag

    def call(self, call: str, summary: str, *, right: Right | None = None, **more: Any) -> Callable[[H], H]:
        """Let a function answer a call, `GET /v1/machines`; its arguments come from where they are annotated.

        A call that names no right is not for the people of a project: it may show, or do, more than is
        theirs. `more` is as `Promise` has it.
        """
        promise = Promise(tag=self._tag, summary=summary, **more)
        default = Right.SURVEY if call.startswith("GET ") else Right.RUN

        def declare(handler: H) -> H:
            self.routes.append(ApiRoute(call, handler, right=right or default, promise=promise))
            return handler

        return declare
