"""A dask worker with data in the guest of a spot machine. It exits when the plug-in has retired it."""

import sys
import threading

from dask_cloudprovider.azure import AzurePreemptibleWorkerPlugin
from distributed import Client, LocalCluster

PATIENCE = 60
EVENTS = "/metadata/scheduledevents?api-version=2019-08-01"


def main(endpoint: str) -> None:
    """Let the plug-in watch an endpoint, and wait until its worker has left."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster, timeout=PATIENCE) as client,
    ):
        client.wait_for_workers(1, timeout=PATIENCE)
        client.register_plugin(AzurePreemptibleWorkerPlugin(metadata_url=endpoint + EVENTS))
        print("watching", flush=True)  # noqa: T201 - the rehearsal tells it
        pause = threading.Event()
        # The scheduler's own list: the client's copy may be incomplete.
        while cluster.scheduler.workers:
            pause.wait(0.1)
        print("left", flush=True)  # noqa: T201 - the rehearsal tells it


if __name__ == "__main__":
    main(sys.argv[1])
