"""First-time work that is done once for all forked programs: mainly compiling statements."""

import tempfile
from pathlib import Path

from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, sample

# One of each kind; reading and showing the others is similar.
READ = (
    *("/openapi.json", "/v1/clock", "/v1/events", "/v1/fleet", "/v1/groups", "/v1/history", "/v1/hosts"),
    *("/v1/machines", "/v1/machines/web-0", "/v1/orders", "/v1/rollouts", "/v1/tokens", "/v1/webhooks"),
)


def warm_up() -> None:
    """Run an order to its end in a temporary store, and read every list."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(sqlite_url(Path(folder)))
        api = Api(app_of(service))
        service.apply(sample())
        service.poll("web-0")
        api("POST", "/v1/machines/web-0/restart", json={})
        for path in READ:
            api("GET", path)
        with service.store.read() as snapshot:
            snapshot.feed.since(1)
        api("POST", "/v1/clock/advance", json={"seconds": 3600})
        service.close()
