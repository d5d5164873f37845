"""Refusals of the API on the command line."""

import pytest

from forewarn.api.endpoints import (
    clock_endpoints,
    hold_endpoints,
    rollout_endpoints,
    token_endpoints,
    webhook_endpoints,
)
from forewarn.api.order_bodies import MachineOrderBody, MaintenanceBody
from forewarn.cli.session import FLAGS, in_flags

BODIES = (
    MaintenanceBody,
    MachineOrderBody,
    hold_endpoints.HoldBody,
    token_endpoints.TokenBody,
    rollout_endpoints.RolloutBody,
    webhook_endpoints.WebhookBody,
    clock_endpoints.AdvanceBody,
)
# Flags without a value, and what the command sets by itself.
NEVER_REFUSED = {"now", "dry_run", "rehearsal"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "heartbeat_seconds: expected at most 1 d, got 30 d",
            "--heartbeat: expected at most 1 d, got 30 d",
        ),
        ('kinds[0]: there is no "foo"', '--kind: there is no "foo"'),
        (
            "seconds: expected at most 400 d, got 900 d",
            "DURATION: expected at most 400 d, got 900 d",
        ),
        ("project: a user is of one project: say which", "--project: a user is of one project: say which"),
        ('machine "web-9" does not exist', 'machine "web-9" does not exist'),
        (
            "projects.shop.windows[0].length: expected a time",
            "projects.shop.windows[0].length: expected a time",
        ),
    ],
)
def test_a_refusal_names_what_was_typed(said: str, shown: str) -> None:
    assert in_flags(said) == shown


def test_every_field_that_a_command_fills_has_its_flag() -> None:
    fields = {name for body in BODIES for name in body.properties()}
    assert fields - NEVER_REFUSED <= FLAGS.keys()
