"""A real nova in one process: API, conductor, scheduler, placement and computes, through its own fixtures.

It runs in nova's virtual environment and does not import forewarn. The hypervisors are nova's fakes. A test
makes them slow or faulty with `PUT /control` and a JSON object of `Behaviour`.
"""

import io
import json
import os
import sys
import threading
import time
from socketserver import ThreadingMixIn
from typing import ClassVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

from nova import exception
from nova.tests.functional import integrated_helpers
from nova.virt import fake

COMPUTES = ("compute1", "compute2")
LOCK, RELEASED = threading.Lock(), threading.Event()


class Behaviour:
    """The behaviour of all hypervisors."""

    live_migration = 0.0  # seconds
    live_migration_fails = False
    migration = 0.0
    migration_fails = False
    reboot = 0.0  # seconds for which the guest ignores a soft reboot
    reboots: ClassVar[list] = []  # the operations so far
    pause = 0.0
    stop = 0.0
    evacuation_fails = False
    misrouted = False  # a proxy answers 404 for every server
    # The next request with this method and this text in its path or body gets no answer until `released`.
    # nova carries it out only if it `performs`.
    hold = None
    performs = False
    held = 0
    released = False


class ToldDriver(fake.MediumFakeDriver):
    """A hypervisor that is slow or fails on request."""

    # Both computes run in one process, where limits of one host would count twice.
    vcpus = 64

    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi, read_only)
        self.aborted = set()

    def live_migration(
        self, context, instance, dest, post_method, recover_method, block_migration=False, migrate_data=None
    ):
        """Migrate a machine, unless the migration is aborted or fails."""
        self.aborted.discard(instance.uuid)
        until = time.monotonic() + Behaviour.live_migration
        while time.monotonic() < until and instance.uuid not in self.aborted:
            time.sleep(0.05)
        if instance.uuid in self.aborted:
            recover_method(context, instance, dest, migrate_data, migration_status="cancelled")
        elif Behaviour.live_migration_fails:
            recover_method(context, instance, dest, migrate_data)  # like libvirt: the machine stays
        else:
            post_method(context, instance, dest, block_migration, migrate_data)

    def post_live_migration(self, context, instance, block_device_info, migrate_data=None):
        """Remove a machine that has migrated."""
        self.destroy(context, instance, network_info=None, block_device_info=block_device_info)

    def live_migration_abort(self, instance):
        """Keep a machine."""
        self.aborted.add(instance.uuid)

    def migrate_disk_and_power_off(self, *args, **kwargs):
        """Stop a machine that will start elsewhere."""
        time.sleep(Behaviour.migration)
        if Behaviour.migration_fails:
            raise exception.InstanceFaultRollback(exception.ResizeError(reason="the disk is full"))

    def reboot(self, context, instance, network_info, reboot_type, *args, **kwargs):
        """Restart a machine; a soft reboot may be slow."""
        if reboot_type == "SOFT":
            time.sleep(Behaviour.reboot)
        Behaviour.reboots.append((instance.uuid, reboot_type))
        super().reboot(context, instance, network_info, reboot_type, *args, **kwargs)

    def pause(self, instance):
        """Pause a machine."""
        time.sleep(Behaviour.pause)

    def power_off(self, instance, timeout=0, retry_interval=0):
        """Shut a machine down."""
        time.sleep(Behaviour.stop)
        super().power_off(instance, timeout, retry_interval)

    def spawn(self, context, instance, *args, **kwargs):
        """Start a machine, unless machines of failed hosts must not start."""
        if Behaviour.evacuation_fails and instance.task_state == "rebuild_spawning":
            raise exception.NovaException("no room on the shelf")
        super().spawn(context, instance, *args, **kwargs)


class Nova(integrated_helpers.ProviderUsageBaseTestCase):
    """The set-up of nova's functional tests."""

    compute_driver = "fake.MediumFakeDriver"

    def setUp(self):
        """Start all services."""
        fake.MediumFakeDriver = ToldDriver
        super().setUp()
        for host in COMPUTES:
            self._start_compute(host)

    def runTest(self):  # noqa: N802  (unittest's name)
        """Test nothing."""


class ThreadingServer(ThreadingMixIn, WSGIServer):
    """Answers concurrent requests."""

    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, *args):
        """Log nothing."""


def identified(app, nova):
    """Identify clients by their tokens, as keystone would, and let tests control nova.

    A token is the name of its user. All users are administrators, also without a token, except the tenant.
    """

    def call(environ, start_response):
        if environ["PATH_INFO"] == "/control":
            return _controlled(nova, environ, start_response)
        user = environ.get("HTTP_X_AUTH_TOKEN", "admin")
        environ["HTTP_X_AUTH_USER"] = user
        environ["HTTP_X_AUTH_PROJECT_ID"] = nova.api_fixture.project_id
        environ["HTTP_X_ROLES"] = "reader,member" if user == "tenant" else "reader,member,admin"
        if Behaviour.misrouted and "/servers/" in environ["PATH_INFO"]:
            start_response("404 Not Found", [("Content-Type", "text/html")])
            return [b"<h1>no such backend</h1>"]
        if _is_held(environ):
            return _held(app, environ, start_response)
        return app(environ, start_response)

    return call


def _is_held(environ):
    """Return whether a request gets no answer; once."""
    hold = Behaviour.hold
    if hold is None or hold["method"] != environ["REQUEST_METHOD"]:
        return False
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    if hold["text"] not in f"{environ['PATH_INFO']} {body.decode()}":
        return False
    with LOCK:
        mine, Behaviour.hold = Behaviour.hold is not None, None
    return mine


def _held(app, environ, start_response):
    """Do not answer a request, performed or not, until the client has gone."""
    answer = list(app(environ, start_response)) if Behaviour.performs else []
    Behaviour.held += 1
    RELEASED.wait(60)
    if not Behaviour.performs:
        start_response("503 Service Unavailable", [])
    return answer


def _controlled(nova, environ, start_response):
    if environ["REQUEST_METHOD"] == "PUT":
        said = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        for host in said.pop("restarted", ()):
            nova.computes[host] = nova.restart_compute_service(nova.computes[host])
        for name, value in said.items():
            setattr(Behaviour, name, value)
        if Behaviour.released:
            RELEASED.set()
        else:
            RELEASED.clear()
    body = {name: value for name, value in vars(Behaviour).items() if not name.startswith("_")}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]


def main():
    """Serve on a port, 0 for any; print the address when it answers."""
    nova = Nova("runTest")
    nova.setUp()
    nova.flags(sync_power_state_interval=-1)
    nova.flags(instances=-1, cores=-1, ram=-1, group="quota")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = make_server(
        "127.0.0.1",
        port,
        identified(nova.api_fixture.app(), nova),
        server_class=ThreadingServer,
        handler_class=QuietHandler,
    )
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/v2.1\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
