"""A dask client with data on a machine that is evicted. It prints its progress."""

import sys
import threading

from dask_cloudprovider.azure import AzurePreemptibleWorkerPlugin
from distributed import Client, Scheduler

PATIENCE = 60


def main(scheduler: str) -> None:
    """Put data on one worker, wait until the worker has left, and fetch the data."""
    with Client(scheduler, timeout=PATIENCE) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        # As in the plug-in's documentation: without arguments, so it polls 169.254.169.254 once a second.
        client.register_plugin(AzurePreemptibleWorkerPlugin())
        addresses = workers(client)
        # Scattered data cannot be computed again: it moves in time, or it is lost.
        (sent,) = client.scatter([list(range(1000))], workers=[addresses["spot-0"]])
        made = client.submit(sum, sent, workers=[addresses["spot-0"]], allow_other_workers=True)
        say("made", made.result(timeout=PATIENCE))

        pause = threading.Event()
        while "spot-0" in (present := workers(client)):
            pause.wait(0.1)
        say("left", sorted(present))
        say("kept", sum(sent.result(timeout=PATIENCE)), made.result(timeout=PATIENCE))


def say(*words: object) -> None:
    """Print a line for the test."""
    print(*words, flush=True)  # noqa: T201 - it reads this


def workers(client: Client) -> dict[str, str]:
    """Return the name and machine of each worker.

    The scheduler answers this, because the client's copy of the list may be incomplete.
    """
    found: dict[str, str] = client.run_on_scheduler(listed)
    return found


def listed(dask_scheduler: Scheduler) -> dict[str, str]:
    """List the workers on the scheduler."""
    return {str(worker.name): address for address, worker in dask_scheduler.workers.items()}


if __name__ == "__main__":
    main(sys.argv[1])
