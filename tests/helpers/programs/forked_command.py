"""The `forewarn` command for scripts: it requests a program from the fork server, and exits with its code.

Run as `python -I -S forked_command.py ADDRESS COMMAND ARGUMENT…`. It loads no libraries, so it starts at
once.
"""

import json
import os
import signal
import socket
import sys

umask = os.umask(0)
os.umask(umask)
asked = {
    "command": sys.argv[2:],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "fsync": False,
    "umask": umask,
}
asking = socket.socket(socket.AF_UNIX)
asking.connect(f"\0{sys.argv[1]}")
line = json.dumps(asked).encode() + b"\n"
asking.sendall(line[socket.send_fds(asking, [line], [0, 1, 2]) :])
answers = asking.makefile()
program = int(answers.readline().removeprefix("begun "))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda received, _: os.kill(program, received))
code = int(answers.readline().removeprefix("ended "))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
