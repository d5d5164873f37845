"""Webhooks: where records are pushed to, and how that fares.

Their addresses are often secrets: who may not keep any need not see those of others.
"""

from forewarn.api.inputs import ListQuery, WebhookInPath
from forewarn.api.request_fields import LINE, PROJECT, line, one_of, several
from forewarn.api.request_parts import Body, declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, ScopedTx, Service, Services
from forewarn.control.webhook_use_cases import WebhookView
from forewarn.core.access import Right
from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.webhook_rules import WebhookId
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.record_answers import NewWebhookAnswer, WebhookTestAnswer, WebhookAnswer
from forewarn.wire.fields import Field

router = ApiRouter("webhooks")

URL = Field(read=line(most=2000).read, schema={"type": "string", "maxLength": 2000, "format": "uri"})


@declared
class WebhookBody(Body):
    """Where records are to be pushed to."""

    url: str = given(URL)
    project: ProjectName | None = maybe(
        PROJECT, "Only records of this project; left out: all that you may see."
    )
    kinds: tuple[Kind, ...] = given(
        several(one_of(Kind), most=100), "Only records of these kinds; none: all.", default=()
    )
    secret: str | None = maybe(
        LINE, "What signs the calls, `whsec_` and 24 to 64 bytes in base64; left out: made."
    )


@router.call("GET /v1/webhooks", "List webhooks", right=Right.USE, errors=(404,))
async def list_webhooks(query: ListQuery, service: Service) -> Page[WebhookAnswer]:
    """List webhooks, oldest first, with what is stuck and why."""
    found, after = await service.read(
        lambda reads: reads.webhooks.webhooks(project=query.project, after=query.after, limit=query.limit)
    )
    return Page(kind=WebhookAnswer, items=[_shown(view) for view in found], next=after)


@router.call(
    "POST /v1/webhooks",
    "Push records to an address",
    right=Right.USE,
    status=201,
    errors=(404, 409, 413),
)
def add_webhook(body: WebhookBody, service: Service, tx: ScopedTx, caller: CallerName) -> NewWebhookAnswer:
    """Push records to an address from now on; the secret that signs them is shown this once."""
    webhook = service.webhooks.add(
        tx, body.url, project=body.project, kinds=body.kinds, secret=body.secret, by=caller
    )
    shown = _shown(WebhookView(webhook=webhook, behind=0))
    return NewWebhookAnswer(webhook=shown, secret=webhook.secret)


@router.call("GET /v1/webhooks/{id}", "Show a webhook", right=Right.USE, errors=(404,))
async def show_webhook(id: WebhookInPath, service: Service) -> WebhookAnswer:
    """Show a webhook, and how far behind it is."""
    return _shown(await _view(service, id))


@router.call("DELETE /v1/webhooks/{id}", "Remove a webhook", right=Right.USE, errors=(404,))
async def remove_webhook(id: WebhookInPath, service: Service, caller: CallerName) -> WebhookAnswer:
    """Push nothing to an address any more; what it has not been sent is dropped."""
    shown = _shown(await _view(service, id))
    await service.run(lambda tx: service.webhooks.remove(tx, id, by=caller))
    return shown


@router.call("POST /v1/webhooks/{id}/test", "Try a webhook out", right=Right.USE, errors=(404, 429))
async def try_webhook(id: WebhookInPath, service: Service) -> WebhookTestAnswer:
    """Call a webhook now with an event of type `forewarn.test`, and say what came of it; once at a time."""
    view = await _view(service, id)
    error = await service.pushing.try_out(view.webhook)
    return WebhookTestAnswer(delivered=error is None, error=error)


async def _view(service: Services, id_: WebhookId) -> WebhookView:
    return await service.read(lambda reads: reads.webhooks.webhook(id_))


def _shown(view: WebhookView) -> WebhookAnswer:
    return WebhookAnswer.of(view.webhook, behind=view.behind, next_try=view.next_try)
