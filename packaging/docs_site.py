"""Collect the pages of the documentation site in build/docs: `make docs` builds the site from there.

The pages in docs link to recipes and to documents at the root of the repository. The site includes these.
"""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAGE = ROOT / "build/docs"

# Documents outside docs that the site includes, in a folder of their own.
INCLUDED = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples"]

_LINK = re.compile(r"(\]\()((?:\.\./)*)(docs/)?([^)#:]*)((?:#[^)]*)?\))")


def stage() -> None:
    """Copy every page and its pictures, with links that hold within the site."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", STAGE)
    for name in INCLUDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, STAGE / name, symlinks=False)
        else:
            shutil.copy(source, STAGE / name)
    for page in STAGE.rglob("*.md"):
        page.write_text(_links_within_the_site(page))


def _links_within_the_site(page: Path) -> str:
    depth = len(page.relative_to(STAGE).parts) - 1

    def within(link: re.Match[str]) -> str:
        opening, steps, docs, target, closing = link.groups()
        # A step above the site leaves docs; in the site, everything else lies beside the pages.
        upward = min(steps.count("../"), depth)
        if target.endswith("/") or (docs and not target):
            target += "README.md"
        return f"{opening}{'../' * upward}{target}{closing}"

    return _LINK.sub(within, page.read_text())


if __name__ == "__main__":
    stage()
