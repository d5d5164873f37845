"""The package as others install it."""

import subprocess
import sys
import zipfile
from pathlib import Path

from forewarn.agent.setup import recipe
from forewarn.cli.unit_text import SERVICES
from forewarn.console import web_files
from forewarn.version import built_version

ROOT = Path(__file__).parents[2]


def test_recipes_units_and_the_console_come_with_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.split("-")[1] == built_version()
    with zipfile.ZipFile(wheel) as archive:
        for name in recipe.names():
            inside = archive.read(f"forewarn/agent/recipes/{name}/{recipe.CONFIG}")
            assert inside.decode() == recipe.text(name)
        for service in SERVICES.values():
            unit = (ROOT / "packaging/systemd" / service.file).read_bytes()
            assert archive.read(f"forewarn/cli/unit_files/{service.file}") == unit
        (folder,) = (
            entry for entry in zipfile.Path(archive, "forewarn/console/").iterdir() if entry.name == "web"
        )
        assert web_files.read(folder) == web_files.packaged()
        assert not [name for name in archive.namelist() if "web/generated" in name]
