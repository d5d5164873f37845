"""Endpoints of webhooks. Their URLs are often secrets, so that viewers cannot list them."""

from forewarn.api.inputs import ListQuery, WebhookInPath
from forewarn.api.request_fields import LINE, PROJECT, line, one_of
from forewarn.api.request_models import Body, field, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import ScopedTx, Service, Services
from forewarn.control.webhook_use_cases import WebhookView
from forewarn.core.access import Right
from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.webhook_rules import WebhookId
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.record_answers import NewWebhookAnswer, WebhookAnswer, WebhookTestAnswer
from forewarn.wire.fields import Field, several

router = ApiRouter("webhooks")

URL = Field(read=line(most=2000).read, schema={"type": "string", "maxLength": 2000, "format": "uri"})


@request_model
class WebhookBody(Body):
    """A new webhook."""

    url: str = field(URL, "URL that receives the records.")
    project: ProjectName | None = nullable(
        PROJECT, "Only records about this project. Default: all that you may see."
    )
    kinds: tuple[Kind, ...] = field(
        several(one_of(Kind), most=100), "Only records of these kinds. Default: all kinds.", default=()
    )
    secret: str | None = nullable(
        LINE, "Secret that signs deliveries: `whsec_` and 24 to 64 bytes in base64. Default: a generated one."
    )


@router.call("GET /v1/webhooks", "List webhooks", right=Right.USE)
async def list_webhooks(query: ListQuery, service: Service) -> Page[WebhookAnswer]:
    """List webhooks, oldest first, with the state of their deliveries."""
    found, after = await service.read(
        lambda reads: reads.webhooks.webhooks(project=query.project, after=query.after, limit=query.limit)
    )
    return Page(kind=WebhookAnswer, items=[_shown(view) for view in found], next=after)


@router.call(
    "POST /v1/webhooks",
    "Add a webhook",
    right=Right.USE,
    status=201,
)
def add_webhook(body: WebhookBody, service: Service, tx: ScopedTx) -> NewWebhookAnswer:
    """Deliver new records to a URL. Only this answer shows the secret that signs deliveries."""
    webhook = service.webhooks.add(
        tx, body.url, project=body.project, kinds=body.kinds, secret=body.secret, by=service.by
    )
    shown = _shown(WebhookView(webhook=webhook, behind=0))
    return NewWebhookAnswer(webhook=shown, secret=webhook.secret)


@router.call("GET /v1/webhooks/{id}", "Show a webhook", right=Right.USE)
async def show_webhook(id: WebhookInPath, service: Service) -> WebhookAnswer:
    """Return a webhook with the state of its deliveries."""
    return _shown(await _view(service, id))


@router.call("DELETE /v1/webhooks/{id}", "Delete a webhook", right=Right.USE)
async def remove_webhook(id: WebhookInPath, service: Service) -> WebhookAnswer:
    """Stop deliveries to a URL. Records that wait for delivery are dropped."""
    shown = _shown(await _view(service, id))
    await service.run(lambda tx: service.webhooks.remove(tx, id, by=service.by))
    return shown


@router.call("POST /v1/webhooks/{id}/test", "Test a webhook", right=Right.USE)
async def try_webhook(id: WebhookInPath, service: Service) -> WebhookTestAnswer:
    """Send an event of type `forewarn.test` to a webhook now, and return the result.

    While another test of the webhook runs: 429.
    """
    view = await _view(service, id)
    error = await service.parts.pushing.send_test(view.webhook)
    return WebhookTestAnswer(delivered=error is None, error=error)


async def _view(service: Services, id_: WebhookId) -> WebhookView:
    return await service.read(lambda reads: reads.webhooks.webhook(id_))


def _shown(view: WebhookView) -> WebhookAnswer:
    return WebhookAnswer.of(view.webhook, behind=view.behind, next_try=view.next_try)
