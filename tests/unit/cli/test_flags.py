"""The CLI replaces the API's field names in errors by flags."""

import click
import pytest

from forewarn.api.endpoints import (
    clock_endpoints,
    hold_endpoints,
    rollout_endpoints,
    token_endpoints,
    webhook_endpoints,
)
from forewarn.api.order_bodies import MaintenanceBody
from forewarn.api.request_models import Body
from forewarn.cli.main import LazyCommand, app
from forewarn.cli.session import in_flags

# Fields without a flag.
WITHOUT_FLAG = {"dry_run", "mode", "rehearsal"}


def command(words: str) -> click.Command:
    noun, verb = words.split()
    group = app.commands[noun]
    assert isinstance(group, LazyCommand)
    loaded = group.load()
    assert isinstance(loaded, click.Group)
    return loaded.commands[verb]


@pytest.mark.parametrize(
    ("words", "refusal", "shown"),
    [
        (
            "host maintenance",
            "heartbeat_seconds: expected at most 1 d, got 30 d",
            "--heartbeat: expected at most 1 d, got 30 d",
        ),
        ("webhook add", 'kinds[0]: there is no "foo"', '--kind: there is no "foo"'),
        (
            "project put",
            'windows[0].start: expected a time of day as 22:00, got "25:00"',
            '--window: expected a time of day as 22:00, got "25:00"',
        ),
        (
            "clock advance",
            "seconds: expected at most 400 d, got 900 d",
            "DURATION: expected at most 400 d, got 900 d",
        ),
        (
            "token create",
            "project: a user is of one project: say which",
            "--project: a user is of one project: say which",
        ),
        ("machine put", 'machine "web-9" does not exist', 'machine "web-9" does not exist'),
        (
            "fleet apply",
            "projects.shop.windows[0].length: expected a time",
            "projects.shop.windows[0].length: expected a time",
        ),
    ],
)
def test_an_error_names_the_flag_instead_of_the_field(words: str, refusal: str, shown: str) -> None:
    assert in_flags(refusal, command(words).params) == shown


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("host maintenance", MaintenanceBody),
        ("hold set", hold_endpoints.HoldBody),
        ("token create", token_endpoints.TokenBody),
        ("rollout start", rollout_endpoints.RolloutBody),
        ("webhook add", webhook_endpoints.WebhookBody),
        ("clock advance", clock_endpoints.AdvanceBody),
    ],
)
def test_every_field_of_the_body_has_a_flag(words: str, body: type[Body]) -> None:
    flags = {param.name for param in command(words).params}
    assert set(body.properties()) - WITHOUT_FLAG - flags == set()
