"""Webhooks: where records are pushed to, and how that fares."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import ListQuery, WebhookBody
from forewarn.api.errors import documented
from forewarn.api.paths import Id, listed, project_name, webhook_id
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service, Services
from forewarn.control.webhooks import WebhookView
from forewarn.core.model.webhook import WebhookId
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["webhooks"])


@router.get(
    "/v1/webhooks", summary="List webhooks", response_model=shapes.Webhooks, responses=documented(404)
)
async def list_webhooks(query: Annotated[ListQuery, Query()], service: Service) -> JSONResponse:
    """List webhooks, oldest first, with what is stuck and why."""
    project = project_name(query.project)
    found, after = await service.run(
        lambda: service.webhooks.webhooks(project=project, after=query.after, limit=query.limit)
    )
    return listed("webhooks", found, after, lambda view: _shown(service, view))


@router.post(
    "/v1/webhooks",
    summary="Push records to an address",
    status_code=201,
    response_model=shapes.NewWebhook,
    responses=documented(404, 409, 413),
)
async def add_webhook(body: WebhookBody, service: Service, caller: Caller) -> JSONResponse:
    """Push records to an address from now on; the secret that signs them is shown this once."""
    project = project_name(body.project)
    webhook = await service.run(
        lambda: service.webhooks.add(
            body.url, project=project, kinds=body.kinds, secret=body.secret, by=caller
        )
    )
    shown = _shown(service, WebhookView(webhook=webhook, behind=0))
    return JSONResponse({"webhook": shown, "secret": webhook.secret}, status_code=201)


@router.get(
    "/v1/webhooks/{id}",
    summary="Show a webhook",
    response_model=shapes.OneWebhook,
    responses=documented(404),
)
async def show_webhook(id: Id, service: Service) -> JSONResponse:
    """Show a webhook, and how far behind it is."""
    return JSONResponse({"webhook": _shown(service, await _view(service, webhook_id(id)))})


@router.delete(
    "/v1/webhooks/{id}",
    summary="Remove a webhook",
    response_model=shapes.OneWebhook,
    responses=documented(404),
)
async def remove_webhook(id: Id, service: Service, caller: Caller) -> JSONResponse:
    """Push nothing to an address any more; what it has not been sent is dropped."""
    wanted = webhook_id(id)
    view = await _view(service, wanted)
    shown = _shown(service, view)
    await service.run(lambda: service.webhooks.remove(wanted, by=caller))
    return JSONResponse({"webhook": shown})


@router.post(
    "/v1/webhooks/{id}/test",
    summary="Try a webhook out",
    response_model=shapes.Trial,
    responses=documented(404, 429),
)
async def try_webhook(id: Id, service: Service) -> JSONResponse:
    """Call a webhook now with an event of type `forewarn.test`, and say what came of it; once at a time."""
    view = await _view(service, webhook_id(id))
    error = await service.pushing.try_out(view.webhook)
    return JSONResponse({"delivered": error is None, "error": error})


async def _view(service: Services, id_: WebhookId) -> WebhookView:
    return await service.run(lambda: service.webhooks.webhook(id_))


def _shown(service: Services, view: WebhookView) -> dict[str, object]:
    next_try = service.pushing.next_try(view.webhook.id)
    return operator.webhook(view.webhook, behind=view.behind, next_try=next_try)
