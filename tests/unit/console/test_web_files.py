"""The static files of the console: one hash for all, and a fixed order of styles."""

import gzip
import re
from pathlib import Path

import pytest

from forewarn.console import web_files

TEMPLATE = (
    '<head><link rel="stylesheet" href="{{assets}}/app.css" />'
    '<!-- modules --><script src="{{assets}}/app.js"></script></head>'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in ("views/fleet/fleet.js", "views/fleet/fleet.css", "elements/tile.css", "app.js"):
        write(tmp_path, path)
    for path in (
        "style/forms.css",
        "style/base.css",
        "style/tokens.css",
        "generated/api.d.ts",
        "tsconfig.json",
    ):
        write(tmp_path, path)
    write(tmp_path, "index.html", TEMPLATE)
    return tmp_path


def write(folder: Path, path: str, text: str = "") -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text or f"/* {path} */")


def links(files: web_files.WebFiles, relation: str) -> list[str]:
    found = re.findall(rf'rel="{relation}" href="/console/assets/\w+/([^"]+)"', files.index.content.decode())
    return list(found)


def test_styles_are_joined_from_general_to_specific(folder: Path) -> None:
    files = web_files.read(folder)
    assert links(files, "stylesheet") == ["app.css"]
    (style,) = (file for path, file in files.assets.items() if path.endswith(".css"))
    assert re.findall(rb"[\w/]+\.css", style.content) == [
        b"style/tokens.css",
        b"style/base.css",
        b"style/forms.css",
        b"elements/tile.css",
        b"views/fleet/fleet.css",
    ]


def test_every_module_is_preloaded(folder: Path) -> None:
    assert links(web_files.read(folder), "modulepreload") == ["app.js", "views/fleet/fleet.js"]


def test_every_link_of_the_index_exists(folder: Path) -> None:
    files = web_files.read(folder)
    linked = re.findall(r'(?:src|href)="([^"]+)"', files.index.content.decode())
    assert set(linked) == files.assets.keys()


def test_development_files_are_not_served(folder: Path) -> None:
    assert not [path for path in web_files.read(folder).assets if path.endswith((".ts", ".json", ".html"))]


def test_a_change_of_one_file_changes_all_paths(folder: Path) -> None:
    before = web_files.read(folder)
    write(folder, "views/fleet/fleet.js", "export {}")
    after = web_files.read(folder)
    assert not before.assets.keys() & after.assets.keys()
    assert before.index.etag != after.index.etag


def test_the_same_files_have_the_same_paths(folder: Path) -> None:
    assert web_files.read(folder).assets.keys() == web_files.read(folder).assets.keys()


def test_compression_is_reproducible(folder: Path) -> None:
    index, again = web_files.read(folder).index, web_files.read(folder).index
    assert gzip.decompress(index.compressed) == index.content
    assert index.compressed == again.compressed


def test_a_bundle_is_read_like_plain_files(folder: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    write(bundle, "index.html", TEMPLATE)
    write(bundle, "app.js")
    (bundle / "app.css").write_bytes(web_files.served(folder)["app.css"])
    files = web_files.read(bundle)
    assert links(files, "modulepreload") == ["app.js"]
    assert [path.rpartition("/")[2] for path in files.assets] == ["app.js", "app.css"]


def test_the_console_is_smaller_than_300_kilobytes_compressed() -> None:
    page = web_files.packaged()
    assert sum(len(file.compressed) for file in (page.index, *page.assets.values())) < 300_000
