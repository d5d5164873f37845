"""A trial of a driver: it checks a step that no order contains, and begins it only on demand."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.config import Settings
from forewarn.core.basic_types import HostName, MachineName, Work
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.model.declaration import FleetSpec, HostSpec, MachineSpec
from forewarn.server import driver_trial
from forewarn.server.driver_trial import DriverTrial, TrialStep, work_of

FLEET = FleetSpec(
    hosts=(HostSpec(name=HostName("rack-1")), HostSpec(name=HostName("rack-2"))),
    machines=(MachineSpec(name=MachineName("web-0"), host=HostName("rack-1")),),
)
STEP = TrialStep(driver="lab", machine="web-0")
Trial = Callable[..., DriverTrial]

# Answers: begun, then half done, then done; a file holds the progress.
BY_AND_BY = """
echo "$1 $FOREWARN_WORK $FOREWARN_MACHINE $FOREWARN_TARGET" >> $d/calls
case "$1-$(wc -l < $d/calls)" in
begin-*) echo '{"state": "running", "mark": "job 7", "look_in": 0}' ;;
check-1) echo '{"state": "not-begun"}' ;;
check-2) echo '{"state": "running", "progress": 0.5}' ;;
check-3) echo "{\\"state\\": \\"done\\", \\"impact\\": 1.5, \\"host\\": \\"$FOREWARN_TARGET\\"}" ;;
cancel-*) echo '{"state": "too-late"}' ;;
esac
"""


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Make a trial with a script as the driver."""
    monkeypatch.setattr(driver_trial, "SHORTEST_WAIT", timedelta())
    monkeypatch.setattr("forewarn.drivers.program_steps.ASK_AGAIN", timedelta())

    def made(text: str, step: TrialStep = STEP) -> DriverTrial:
        command = ["/bin/sh", "-c", f'd="{tmp_path}"; {text}', "lab"]
        settings = Settings(drivers={"lab": {"kind": "command", "command": command}})
        return DriverTrial(settings, FLEET, step)

    return made


def test_a_check_of_an_unknown_step_should_answer_not_begun(trial: Trial, tmp_path: Path) -> None:
    said, good = trial(BY_AND_BY).check()
    assert (said.call, said.state, good) == ("check", "not-begun", True)
    assert (tmp_path / "calls").read_text() == "check freeze web-0 \n"


def test_any_other_answer_to_the_check_counts_as_wrong(trial: Trial) -> None:
    said, good = trial("echo hello").check()
    assert (said.state, good) == ("unknown", False)
    assert "no JSON object" in said.says


def test_a_step_is_carried_out_to_its_end_on_demand(trial: Trial, tmp_path: Path) -> None:
    step = TrialStep(driver="lab", machine="web-0", work=Work.REDEPLOY, target="rack-2")
    answers = list(trial(BY_AND_BY, step).carry_out())
    assert [(said.call, said.state, said.says) for said, _ in answers] == [
        ("begin", "running", "mark job 7"),
        ("check", "running", "50%"),
        ("check", "done", "on rack-2, away for 1.5 s"),
    ]
    assert [done for _, done in answers] == [False, False, True]
    assert (tmp_path / "calls").read_text().splitlines()[0] == "begin redeploy web-0 rack-2"


def test_a_failed_step_ends_the_trial(trial: Trial) -> None:
    ((said, done),) = trial("echo no room >&2; exit 1").carry_out()
    assert (said.state, done) == ("failed", False)
    assert said.says.endswith("no room")


def test_a_step_is_cancelled(trial: Trial) -> None:
    assert trial(BY_AND_BY).cancel().state == "too-late"
    assert trial("""echo '{"state": "cancelled"}'""").cancel().state == "cancelled"


@pytest.mark.parametrize(
    ("step", "kind", "said"),
    [
        (TrialStep(driver="labb", machine="web-0"), Invalid, "did you mean lab?"),
        (TrialStep(driver="simulated", machine="web-0"), Conflict, "needs no trial"),
        (TrialStep(driver="lab", machine="web-00"), NotFound, 'machine "web-00" is not in the fleet'),
        (
            TrialStep(driver="lab", machine="web-0", work=Work.REDEPLOY),
            Invalid,
            "--to: expected the target host",
        ),
        (TrialStep(driver="lab", machine="web-0", target="rack-3"), NotFound, 'host "rack-3" is not'),
    ],
)
def test_an_impossible_trial_is_refused(
    trial: Trial, step: TrialStep, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as refused:
        trial("exit 0", step)
    assert said in str(refused.value)


def test_only_work_on_machines_can_be_tried() -> None:
    assert (work_of(None), work_of("reboot")) == (Work.FREEZE, Work.REBOOT)
    with pytest.raises(Invalid, match="--begin: expected evict, freeze"):
        work_of("host")
