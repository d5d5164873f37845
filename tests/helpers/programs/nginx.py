"""A real nginx in its own folder."""

import subprocess
from pathlib import Path

from tests.helpers.programs.process import until

CONFIG = """
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"""


class Nginx:
    """nginx with one `server` block."""

    def __init__(self, folder: Path, server: str) -> None:
        self.pid_file = folder / "nginx.pid"
        config = folder / "nginx.conf"
        config.write_text(CONFIG.format(folder=folder, server=server))
        self.command = ["nginx", "-e", str(folder / "error.log"), "-c", str(config)]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        subprocess.run(self.command, check=True, capture_output=True)

    def stop(self) -> None:
        subprocess.run([*self.command, "-s", "stop"], check=False, capture_output=True)
        until(lambda: not self.pid_file.exists(), what="nginx to end")
