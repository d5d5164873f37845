"""The driver of docs/deploy/write-a-driver.md, which writes each step to a file in a directory."""

import re
from pathlib import Path

PAGE = Path("docs/deploy/write-a-driver.md")


def installed(site: Path, name: str = "forewarn-spool", version: str = "1.0") -> None:
    """Install its package in a folder on Python's path."""
    page = PAGE.read_text(encoding="utf-8")
    code, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (declared,) = re.findall(r"^spool = \"(.*)\"$", page, re.MULTILINE)
    (site / "forewarn_spool.py").write_text(code, encoding="utf-8")
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[forewarn.drivers]\nspool = {declared}\n")
