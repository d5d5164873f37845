"""Scenario files."""

from datetime import timedelta

import pytest

from forewarn.core.basic_types import Action, Work
from forewarn.core.errors import Invalid, NotFound
from forewarn.core.rehearsal_rules import Fault, FaultKind
from forewarn.rehearsal.scenario import (
    CancelStep,
    Expectation,
    FaultStep,
    GuestCommand,
    OrderStep,
    Probe,
    Scenario,
    ScenarioStep,
    Start,
)
from forewarn.rehearsal.scenario_file import (
    all_shipped,
    default_fleet,
    find,
    read_scenario,
    with_command,
    with_speed,
)

HEAD = '[scenario]\nname = "mine"\n'

WHOLE = """
[scenario]
name = "mine"
about = "All there is."
clock = "x30"
start = "now"
limit = "1h"

[[steps]]
at = "2m"
cancel = true

[[steps]]
at = "10s"
order = { host = "host-1", action = "maintenance", work = "freeze" }

[[steps]]
fault = { kind = "429", machines = ["web-0"], for = "30s", calls = 3 }

[[guests]]
machine = "web-0"
command = ["./my-agent", "{endpoint}"]

[expect]
approved = true
within = "5m"
"""


def read(text: str) -> Scenario:
    return read_scenario(text, default_fleet=default_fleet())


def test_a_scenario_says_what_happens_when() -> None:
    scenario = read(WHOLE)
    assert scenario.steps == (
        ScenarioStep(
            at=timedelta(),
            does=FaultStep(
                fault=Fault(kind=FaultKind.TOO_MANY, machines=("web-0",), calls=3),
                lasts=timedelta(seconds=30),
            ),
        ),
        ScenarioStep(
            at=timedelta(seconds=10),
            does=OrderStep(action=Action.MAINTENANCE, host="host-1", work=Work.FREEZE),
        ),
        ScenarioStep(at=timedelta(minutes=2), does=CancelStep()),
    )
    assert (scenario.name, scenario.about, scenario.clock) == ("mine", "All there is.", "x30")
    assert (scenario.start, scenario.limit) == (Start.NOW, timedelta(hours=1))
    assert scenario.guests == (GuestCommand(machine="web-0", command=("./my-agent", "{endpoint}")),)


def test_expectations_apply_to_the_machines_that_orders_affect() -> None:
    assert read(WHOLE).expect == Expectation(machines=("web-0",), approved=True, within=timedelta(minutes=5))


def test_without_orders_expectations_apply_to_all_machines() -> None:
    assert read(HEAD).expect.machines == ("web-0", "web-1", "web-2", "batch_0")


def test_a_scenario_may_bring_its_own_fleet() -> None:
    fleet = '[fleet.hosts.h]\n[[fleet.machines]]\nname = "db"\nhost = "h"\nport = 8400\n'
    assert read(HEAD + fleet).machines == ("db",)


def test_the_clock_can_be_another() -> None:
    assert with_speed(read(WHOLE), 600).clock == "x600"


def test_a_command_runs_for_each_machine_with_an_expectation() -> None:
    told = with_command(find("rolling-host-update"), ["agent", "{endpoint}"])
    assert [guest.machine for guest in told.guests] == ["web-0", "web-1", "web-2"]
    assert {guest.command for guest in told.guests} == {("agent", "{endpoint}")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = 3", "steps: expected a list, got 3"),
        ("", "scenario.name: expected a name, but it is missing"),
        ('[scenario]\nnam = "x"', "scenario.nam: there is no such field; did you mean name?"),
        (HEAD + 'clock = "manual"', "scenario.clock: expected system or xN"),
        (HEAD + 'clock = "fast"', "scenario.clock: clock 'fast': expected"),
        (HEAD + 'limit = "soon"', "scenario.limit: expected a time such as 90"),
        (HEAD + "limit = -1", "scenario.limit: expected a time that is not negative"),
        (HEAD + "[fleet]", "fleet: machines: expected at least one"),
        (HEAD + '[[fleet.machines]]\nname = "x"', 'fleet: machines[0] "x": host: expected a name'),
        (HEAD + '[[steps]]\nat = "1s"', "steps[0]: expected one of order, cancel or fault"),
        (HEAD + "[[steps]]\ncancel = false", "steps[0]: cancel: expected true, got false"),
        (HEAD + '[[steps]]\norder = {action="restart"}', "steps[0]: order: expected either machine or host"),
        (
            HEAD + '[[steps]]\norder = {machine="web-9", action="restart"}',
            'steps[0]: order.machine: expected a machine of the fleet, got "web-9"',
        ),
        (
            HEAD + '[[steps]]\norder = {host="host-9", action="fail"}',
            'steps[0]: order.host: expected a host of the fleet, got "host-9"',
        ),
        (
            HEAD + '[[steps]]\norder = {machine="web-0", action="fail"}',
            "steps[0]: order.action: expected evict, freeze, move, recommend-rebalance, redeploy, restart, "
            "start or terminate",
        ),
        (
            HEAD + '[[steps]]\norder = {host="host-1", action="maintenance"}',
            "steps[0]: order.work: expected freeze, reboot or redeploy",
        ),
        (HEAD + '[[steps]]\nfault = {for="1s"}', "steps[0]: fault.kind: expected slow, hang, 429"),
        (
            HEAD + '[[steps]]\nfault = {kind="500", machines=["unknown"]}',
            'steps[0]: fault.machines: expected a machine of the fleet, got "unknown"',
        ),
        (
            HEAD + '[[guests]]\nmachine = "web-0"',
            "guests[0]: command: expected a list of words, but it is missing",
        ),
        (
            HEAD + '[[guests]]\nmachine = "web-0"\ncommand = "agent"',
            "guests[0]: command: expected a list",
        ),
        (HEAD + '[expect]\nwithin = "1m"', "expect.within: expected approved = true beside it"),
        (HEAD + "[expect]\napproved = 1", "expect.approved: expected true or false, got 1"),
        ("[scenario", "the file is not TOML"),
    ],
)
def test_a_bad_scenario_names_the_field(text: str, message: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read(text)
    assert str(refusal.value).startswith(message)


def test_forewarn_ships_ten_scenarios_under_their_names() -> None:
    shipped = [scenario.name for scenario in all_shipped()]
    assert shipped == [
        "cancelled-maintenance",
        "degraded-hardware",
        "hardware-failure",
        "host-update",
        "live-migration",
        "redeploy",
        "rolling-host-update",
        "spot-eviction",
        "terminate",
        "user-restart",
    ]
    assert [find(name).name for name in shipped] == shipped
    assert all(scenario.about for scenario in all_shipped())


def test_the_error_for_an_unknown_name_says_where_to_look() -> None:
    with pytest.raises(NotFound, match="rehearse --list"):
        find("earthquake")


def test_a_probe_is_a_url_or_a_command_and_how_well_it_must_hold() -> None:
    text = """
[scenario]
name = "mine"
recovery = "30s"
[[probe]]
name = "shop"
url = "http://127.0.0.1:8000/health"
back-within = "10s"
every = 0.5
[[probe]]
name = "queue"
command = ["./check-queue"]
throughout = true
timeout = 2
"""
    scenario = read(text)
    assert scenario.recovery == timedelta(seconds=30)
    assert scenario.probes == (
        Probe(
            name="shop",
            url="http://127.0.0.1:8000/health",
            back_within=timedelta(seconds=10),
            every=timedelta(seconds=0.5),
        ),
        Probe(name="queue", command=("./check-queue",), timeout=timedelta(seconds=2)),
    )


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        ('url = "http://a/"', "probe[0]: name: expected a name, but it is missing"),
        ('name = "a"', "probe[0]: expected either url or command"),
        ('name = "a"\nurl = "http://a/"\ncommand = ["x"]', "probe[0]: expected either url or command"),
        (
            'name = "a"\nurl = "ftp://a/"',
            "probe[0]: url: expected a URL, such as http://127.0.0.1:8000/health",
        ),
        ('name = "a"\nurl = "http://a/"\nevery = 0', "probe[0]: every: expected a positive time"),
        (
            'name = "a"\nurl = "http://a/"\nthroughout = true\nback-within = 5',
            "probe[0]: expected either throughout or back-within",
        ),
        (
            'name = "a"\nurl = "http://a/"\n[[probe]]\nname = "a"\nurl = "http://b/"',
            'probe[1]: name: "a" is the name of another',
        ),
    ],
)
def test_the_error_for_a_bad_probe_names_the_field(probe: str, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(f"{HEAD}[[probe]]\n{probe}\n")
    assert str(refused.value).startswith(why)
