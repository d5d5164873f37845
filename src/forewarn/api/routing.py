"""Declare endpoints: who may call them, what they answer, and which errors they may return."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from forewarn.api.audit import changes_nothing
from forewarn.api.error_answers import status_of
from forewarn.api.inputs import (
    BodyInput,
    Input,
    PathInput,
    PreparedInput,
    QueryInput,
    RawBodyInput,
    TransactionInput,
    inputs_of,
)
from forewarn.api.request_headers import REPLAYED_HEADER, keyed_call
from forewarn.api.services import Services
from forewarn.clock import monotonic
from forewarn.control.idempotent_calls import IdempotentCall, IdempotentResponse
from forewarn.control.use_case import ExclusiveJob, PrefetchingUseCase
from forewarn.core.access import Right, check
from forewarn.core.errors import ForewarnError, Unavailable
from forewarn.core.scope import Scope
from forewarn.durations import Durations
from forewarn.store.batch import Transact, Transaction
from forewarn.store.prefetch import Prefetch
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.coding import write_body, write_json

Answer: TypeAlias = ApiAnswer | Page[ApiAnswer]
# A function runs on a reader thread for a GET, and otherwise on the worker thread. A coroutine runs on the
# event loop and uses both threads as it needs.
Handler: TypeAlias = Callable[..., Any]
H = TypeVar("H", bound=Handler)
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class WithStatus(Generic[A]):
    """An answer with a status or an ETag of its own."""

    body: A
    status: int = 200
    tag: str | None = None  # the ETag


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointInfo:
    """The description of an endpoint, for requests and for the OpenAPI document."""

    tag: str
    summary: str
    status: int = 200
    errors: tuple[int, ...] = ()  # further statuses of its errors
    also: Mapping[int, str] = field(default_factory=dict)  # descriptions of other statuses of the answer
    description: str | None = None  # default: the handler's docstring
    operation_id: str | None = None  # default: the handler's name
    is_documented: bool = True
    # Runs on the worker thread after the answer is saved. It runs again when a repeated call is answered,
    # because the server may have been killed in between.
    finish: Callable[[Services, Mapping[str, Any]], None] | None = None
    # Refuses to repeat an answer whose result has ended, such as a session.
    check_replayed: Callable[[Services, Transaction, Mapping[str, Any]], None] | None = None
    # Answers while the database cannot be written, with the call's key and the handler's arguments.
    # None: there is no such answer. The original call may still take effect.
    unsaved: Callable[..., "WithStatus[Any] | None"] | None = None
    # Answers a dry run. It only reads.
    dry_run: Handler | None = None
    # Reads ahead, to shorten the work on the worker thread. The handler gets the result in a PreparedInput,
    # or None after an error: the handler then fails with the same error.
    prepare: Handler | None = None
    # Makes the response if it is more than the body.
    respond: Callable[[Request, IdempotentResponse], Response] | None = None
    answer: Any = None  # type of the answer; default: the handler's return type
    # The argument with the machine's name. The worker loads the machines of a batch of calls together.
    machine: str | None = None


class ApiRoute(Route):
    """The route of an endpoint. It checks the caller's right before it reads the body."""

    def __init__(self, call: str, handler: Handler, *, right: Right, info: EndpointInfo) -> None:
        method, path = call.split()
        super().__init__(path, self._answer, name=handler.__name__)
        # Starlette adds HEAD to GET. An endpoint that answers HEAD declares it.
        self.method, self.methods = method, {method}
        self.handler = handler
        self.right = right
        self.info = info

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The input of each parameter of the handler."""
        return inputs_of(self.handler)

    @property
    def answer(self) -> Any:
        """The type of the answer."""
        return self.info.answer or inspect.signature(self.handler).return_annotation

    @property
    def errors(self) -> set[int]:
        """The statuses of its errors, besides those of all endpoints."""
        kinds = {type(each) for each in self.inputs.values()}
        may_be_missing = self.method == "DELETE" or kinds & {BodyInput, PathInput, QueryInput}
        return {
            *self.info.errors,
            *((404,) if may_be_missing else ()),
            *((409,) if self.method != "GET" else ()),
            *((413,) if kinds & {BodyInput, RawBodyInput} else ()),
        }

    @property
    def operation(self) -> str:
        """The operationId, which metrics use too."""
        return (self.info.operation_id or self.name).replace("-", "_")

    async def _answer(self, request: Request) -> Response:
        """Answer a request and record its duration. The duration of a stream ends when it begins."""
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
            if status:  # 0: the client has disconnected
                durations: Durations = request.app.state.durations
                durations.note(self.operation, f"{status // 100}xx", seconds=monotonic() - began)

    async def _respond(self, request: Request) -> Response:
        caller = getattr(request.state, "caller", None)  # probes have none
        if caller is not None:
            check(caller, self.right)
        arguments = await _arguments(request, self.handler, {})
        dry_run = self.info.dry_run
        if dry_run is not None and any(getattr(each, "dry_run", False) for each in arguments.values()):
            changes_nothing(request.scope)
            return await self._read(request, dry_run, await _arguments(request, dry_run, arguments))
        is_coroutine = inspect.iscoroutinefunction(self.handler)
        if self.method == "POST":
            answered = await self._carry_out(request, arguments)
            response = self._sent(request, answered)
            if answered.again:
                response.headers[REPLAYED_HEADER] = "true"
            return response
        if self.method == "GET" and not is_coroutine:
            return await self._read(request, self.handler, arguments)
        answer = await (self.handler(**arguments) if is_coroutine else self._change(request, arguments))
        if self.info.respond is not None:
            return self._sent(request, self._answered(answer))
        return answer if isinstance(answer, Response) else self._response(answer)

    async def _change(self, request: Request, arguments: Mapping[str, Any]) -> Any:
        """Run the handler of a PUT or DELETE on the worker thread."""
        services: Services = request.app.state.services
        mine = services.scoped(request.state.caller)
        return await mine.run_unscoped(lambda tx: self._work(tx, mine.scope, arguments))

    async def _with_prepared(
        self, request: Request, prepare: Handler, given: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Add the result of the `prepare` function to the arguments."""
        services: Services = request.app.state.services
        arguments = await _arguments(request, prepare, given)
        try:
            found = await services.scoped(request.state.caller).read(lambda _: prepare(**arguments))
        except Unavailable:  # the worker would wait for the same database
            raise
        except ForewarnError:  # the call may be a repeated one, or become possible before its turn
            found = None
        prepared = (name for name, each in self.inputs.items() if isinstance(each, PreparedInput))
        return {**given, **dict.fromkeys(prepared, found)}

    async def _read(self, request: Request, show: Handler, arguments: Mapping[str, Any]) -> Response:
        """Run a handler on a reader thread, and encode its answer there: a long list takes time."""
        services: Services = request.app.state.services

        def respond() -> Response:
            answer = show(**arguments)
            return answer if isinstance(answer, Response) else self._response(answer)

        return await services.scoped(request.state.caller).read(lambda _: respond())

    def _sent(self, request: Request, answered: IdempotentResponse) -> Response:
        if self.info.respond is not None:
            return self.info.respond(request, answered)
        return Response(answered.body, answered.status, media_type=JSONResponse.media_type)

    async def _carry_out(self, request: Request, arguments: Mapping[str, Any]) -> IdempotentResponse:
        """Carry out a POST. With an Idempotency-Key: once, however often it is sent."""
        services: Services = request.app.state.services
        mine = services.scoped(request.state.caller)
        run = mine.run_unscoped  # in the caller's turn
        call = await keyed_call(request)
        if self.info.prepare is not None:
            arguments = await self._with_prepared(request, self.info.prepare, arguments)
        if not inspect.iscoroutinefunction(self.handler):
            try:
                return await run(self._job(services, mine.scope, call, arguments))
            except Unavailable:
                answered = self._unsaved(call, arguments)
                if answered is None:
                    raise
                return answered
        # A coroutine changes nothing in this transaction, so the answer is saved afterwards.
        known = await run(lambda tx: services.answering.find(tx, call)) if call else None
        if known:
            return known
        answered = self._answered(await self.handler(**arguments))
        if call is None:
            return answered
        return await run(lambda tx: services.answering.answer(tx, call, lambda: answered))

    def _unsaved(
        self, call: IdempotentCall | None, arguments: Mapping[str, Any]
    ) -> IdempotentResponse | None:
        if self.info.unsaved is None:
            return None
        given = {
            name: arguments[name]
            for name, each in self.inputs.items()
            if not isinstance(each, TransactionInput)
        }
        answer = self.info.unsaved(call, **given)
        return None if answer is None else self._answered(answer)

    def _job(
        self, services: Services, scope: Scope, call: IdempotentCall | None, arguments: Mapping[str, Any]
    ) -> Callable[[Transaction], IdempotentResponse] | ExclusiveJob[IdempotentResponse]:
        """Return the job that the worker runs for a POST."""

        def job(tx: Transaction) -> IdempotentResponse:
            def work() -> IdempotentResponse:
                return self._answered(self._work(tx, scope, arguments))

            answered = services.answering.answer(tx, call, work) if call else work()
            if answered.again and self.info.check_replayed is not None:
                self.info.check_replayed(services, tx, json.loads(answered.body))
            return answered

        finish = self.info.finish
        if finish is not None:

            def alone(transact: Transact) -> IdempotentResponse:
                answered = transact(job)
                finish(services, json.loads(answered.body))
                return answered

            return ExclusiveJob(alone)
        if self.info.machine is not None:
            answer = None if call is None else call.saved_as
            machine = arguments[self.info.machine]
            return PrefetchingUseCase(job, Prefetch(machine=machine, project=scope.caller, answer=answer))
        return job

    def _work(self, tx: Transaction, scope: Scope, arguments: Mapping[str, Any]) -> Any:
        opened = {
            name: each.scoped(tx, scope)
            for name, each in self.inputs.items()
            if isinstance(each, TransactionInput)
        }
        return self.handler(**{**arguments, **opened})

    def _answered(self, answer: Any) -> IdempotentResponse:
        response = self._response(answer)
        return IdempotentResponse(status=response.status_code, body=bytes(response.body))

    def _response(self, answer: Any) -> Response:
        if isinstance(answer, WithStatus):
            headers = None if answer.tag is None else {"ETag": answer.tag}
            return AnswerResponse(write_body(answer.body), status_code=answer.status, headers=headers)
        return AnswerResponse(write_body(answer), status_code=self.info.status)


class AnswerResponse(JSONResponse):
    """A JSON response. It encodes each item of a list separately."""

    def render(self, content: Any) -> bytes:
        """Encode the body."""
        return write_json(content)


async def _arguments(request: Request, handler: Handler, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function. `given` has those that are already read."""
    return {
        name: given[name] if name in given else await each.read(name, request)
        for name, each in inputs_of(handler).items()
    }


class ApiRouter:
    """Collects the endpoints of a module."""

    def __init__(self, tag: str) -> None:
        """Take the tag that groups the endpoints in the OpenAPI document. A call can have another tag."""
        self.routes: list[ApiRoute] = []
        self._tag = tag

    def call(self, call: str, summary: str, *, right: Right | None = None, **more: Any) -> Callable[[H], H]:
        """Register a function as the endpoint of a call such as `GET /v1/machines`.

        `more` are fields of `EndpointInfo`. By default, users of a project may not call an endpoint: it may
        access more than their project.
        """
        info = EndpointInfo(**{"tag": self._tag, "summary": summary, **more})
        default = Right.SURVEY if call.startswith("GET ") else Right.RUN

        def declare(handler: H) -> H:
            self.routes.append(ApiRoute(call, handler, right=right or default, info=info))
            return handler

        return declare
