"""What a rehearsal asks of the service it is played on: the operator API, whichever way it is reached."""

from collections.abc import Mapping
from typing import Any

import httpx

from forewarn.core.errors import Conflict, NotFound, Unavailable
from forewarn.rehearsal.scenario import OrderStep

FIRST_ERROR = 400
NOT_FOUND = 404
FIRST_FAULT = 500  # of the server's own: another time it may answer


class Operator:
    """Does what operators ask, and shows what they are shown."""

    def __init__(
        self, api: httpx.AsyncClient, *, terms: Mapping[str, str], scope: Mapping[str, str] | None = None
    ) -> None:
        """Take what every order says beside its action, and the query that says whose machines are meant."""
        self._api = api
        self._terms = terms
        self._scope = dict(scope or {})

    async def order(self, step: OrderStep) -> str:
        """Place an order, and return its id; Conflict says why it cannot be."""
        body = {**self._terms, **({"action": step.work.value} if step.work else {})}
        if step.machine:
            path, query = f"/v1/machines/{step.machine}/{step.action.value}", self._scope
        else:
            path, query = f"/v1/hosts/{step.host}/{step.action.value}", {}
        answer = await self.call("POST", path, json=body, params=query)
        return str(answer["order"]["id"])

    async def cancel(self, order: str) -> None:
        """Call an order off; Conflict if it is too late."""
        await self.call("POST", f"/v1/orders/{order}/cancel")

    async def show(self, order: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Show an order, and all its events, over ones too."""
        shown = await self.call("GET", f"/v1/orders/{order}")
        return shown["order"], shown["events"]

    async def machine(self, name: str) -> dict[str, Any]:
        """Show a machine; NotFound if there is none."""
        shown = await self.call("GET", f"/v1/machines/{name}", params=self._scope)
        return dict(shown["machine"])

    async def call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """Ask for something; the server's refusal is a Conflict or NotFound, its silence is Unavailable."""
        try:
            answer = await self._api.request(method, path, **more)
            said = answer.json()
            refusal = said["error"]["message"] if answer.status_code >= FIRST_ERROR else None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unavailable(f"no server answers at {self._api.base_url} ({error})") from None
        except (ValueError, KeyError, TypeError):
            raise Unavailable(f"what answers at {self._api.base_url} is no forewarn server") from None
        if refusal is None:
            return dict(said)
        if answer.status_code >= FIRST_FAULT:
            raise Unavailable(refusal)
        raise (NotFound if answer.status_code == NOT_FOUND else Conflict)(refusal)

    async def close(self) -> None:
        """Ask nothing more."""
        await self._api.aclose()
