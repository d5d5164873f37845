"""What the hooks before and after the work on a machine are given."""

from forewarn.config import MachineHookSettings
from forewarn.control.driver import DriverTask
from forewarn.core.copies import replace
from forewarn.drivers.machine_hook_marks import Part, WorkEnd, end_as_json
from forewarn.drivers.programs.hook_runs import Hook
from forewarn.drivers.programs.program_runs import Invocation
from forewarn.drivers.programs.tasks_as_json import as_json, as_variables


def hook_before(task: DriverTask, settings: MachineHookSettings, *, mark: str) -> Hook:
    """Return the hook before the work; the mark is what it has left."""

    def invocation(call: str) -> Invocation:
        asked = replace(task, mark=mark)
        return Invocation(
            words=(*settings.before, call),
            variables={**as_variables(asked, call=call), "FOREWARN_HOOK": "machine-before"},
            input=as_json(asked, call=call, more={"hook": "machine-before"}),
            timeout=settings.timeout,
        )

    name = f"{task.name}, before the work"
    return Hook(key=(task.id, Part.BEFORE), name=name, now=task.now, invocation=invocation)


def hook_after(
    task: DriverTask, settings: MachineHookSettings, *, mark: str = "", end: WorkEnd | None
) -> Hook:
    """Return the hook after the work, which is told how that ended; None: otherwise than its driver said."""

    def invocation(call: str) -> Invocation:
        asked, outcome = replace(task, mark=mark), end_as_json(end)
        return Invocation(
            words=(*settings.after, call),
            variables={
                **as_variables(asked, call=call),
                "FOREWARN_HOOK": "machine-after",
                "FOREWARN_OUTCOME": outcome["state"],
            },
            input=as_json(asked, call=call, more={"hook": "machine-after", "outcome": outcome}),
            timeout=settings.timeout,
        )

    name = f"{task.name}, after the work"
    return Hook(key=(task.id, Part.AFTER), name=name, now=task.now, invocation=invocation)
