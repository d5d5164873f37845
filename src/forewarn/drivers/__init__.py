"""Drivers carry out steps on hypervisors. This docstring is the contract that every driver keeps.

A step is one machine's share of a started stage, or one task on a host itself. forewarn passes it to the
driver of the host as a `DriverTask`. The types are in `forewarn.control.driver`.

A driver has four members:

- `limits`: the timeout of a call and the number of concurrent calls for each host.
- `begin(task)`: start the step. forewarn saves the attempt first and calls `begin` once for each attempt.
- `check(task)`: report how the step is going. After a crash, or a change of leader, forewarn calls `check`
  first. So a driver may get a `check` for an attempt that it has never begun.
- `cancel(task)`: stop the step, if it can still be stopped.

A driver may also have `precheck(task)`. It returns why a move would fail, or None, and changes nothing.
forewarn calls it before it announces a move. `forewarn.control.driver` lists the other optional members.

| answer | from | meaning |
|---|---|---|
| `Done` | begin, check | The step is complete. `host` names the machine's host if the driver chose it |
| `Running` | begin, check | The step is in progress. forewarn calls `check` at `look_at` and stores `mark` |
| `Failed` | begin, check | The step was not carried out and has stopped. A person may retry it |
| `Unknown` | all | The driver cannot tell: a hypervisor is unreachable. forewarn calls again |
| `NotBegun` | check | The driver has never begun this attempt. forewarn calls `begin` |
| `Cancelled` | cancel | The step has stopped. The driver also refuses a late `begin` of this attempt |
| `TooLate` | cancel | The step cannot be stopped and goes on |

Rules:

- Order, machine (or host task) and attempt identify a step. The attempt number is a fencing token: after a
  call with attempt 2, the driver refuses attempt 1 of the same step.
- An unreachable hypervisor is `Unknown`, never `Failed`. An exception counts as `Unknown`.
- `task.mark` is the `mark` of the last `Running`. The driver uses it to recognize its own work.
- forewarn calls drivers outside transactions. Calls for one host run concurrently, up to `limits.at_once`.

Each kind of driver is one module or package here: `simulated`, `external`, `command`, `libvirt`, `openstack`.
"""
