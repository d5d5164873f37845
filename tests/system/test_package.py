"""The package as others install it."""

import subprocess
import sys
import zipfile
from pathlib import Path

from forewarn.agent.setup import recipe
from forewarn.cli.unit_text import SERVICES

ROOT = Path(__file__).parents[2]


def test_recipes_and_units_come_with_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in recipe.names():
            inside = archive.read(f"forewarn/agent/recipes/{name}/{recipe.CONFIG}")
            assert inside.decode() == recipe.text(name)
        for service in SERVICES.values():
            unit = (ROOT / "packaging/systemd" / service.file).read_bytes()
            assert archive.read(f"forewarn/cli/unit_files/{service.file}") == unit
