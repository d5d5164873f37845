"""The static files of the console: read once, and compressed on the first request.

Each path contains a hash of all files, so a browser never mixes two versions of the console. A clone serves
the modules of the repository. A wheel contains one bundled module (`packaging/console_bundle.py`). Both are
read the same way.
"""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from types import MappingProxyType

from forewarn.console.console_paths import ASSETS

INDEX = "index.html"
# All styles joined: one request instead of one per view.
STYLE = "app.css"

# Files of other types, such as type declarations, are not served.
MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".png": "image/png",
        ".svg": "image/svg+xml; charset=utf-8",
        ".webmanifest": "application/manifest+json; charset=utf-8",
        ".woff2": "font/woff2",
    }
)
_COMPRESSED_ALREADY = frozenset({".png", ".woff2"})
_HASH_DIGITS = 16

# Later rules win, so shared styles come before the styles of views.
_FIRST_STYLES = ("style/tokens.css", "style/base.css")
_STYLE_FOLDERS = ("style", "elements", "views")


@dataclass(frozen=True, kw_only=True)
class WebFile:
    """A file with its media type."""

    content: bytes
    media_type: str
    is_compressible: bool

    @cached_property
    def etag(self) -> str:
        """Return a weak tag, because the content is sent with or without compression."""
        return f'W/"{_digest([self.content])}"'

    @cached_property
    def compressed(self) -> bytes:
        """Return the content, compressed with gzip."""
        return gzip.compress(self.content, 9, mtime=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFiles:
    """The index and the assets by path."""

    index: WebFile
    assets: Mapping[str, WebFile]


def packaged() -> WebFiles:
    """Read the installed files."""
    return read(resources.files("forewarn.console") / "web")


def read(folder: Traversable) -> WebFiles:
    """Read the files of a folder, and fill in the prefix and the links of the index."""
    contents = served(folder)
    template = contents.pop(INDEX).decode()
    hashed = _digest(part for path, content in contents.items() for part in (path.encode(), content))
    prefix = f"{ASSETS}{hashed}"
    index = _filled(template, prefix=prefix, paths=list(contents)).encode()
    return WebFiles(
        index=_file(INDEX, index),
        assets={f"{prefix}/{path}": _file(path, content) for path, content in contents.items()},
    )


def served(folder: Traversable) -> dict[str, bytes]:
    """Return the files of a folder by path, with all styles joined into one file."""
    contents = dict(sorted(_contents(folder, "")))
    styles = sorted((path for path in contents if path.endswith(".css")), key=_style_rank)
    contents[STYLE] = b"\n".join(contents.pop(path) for path in styles)
    return contents


def _contents(folder: Traversable, prefix: str) -> Iterable[tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _contents(entry, f"{path}/")
        elif PurePosixPath(path).suffix in MEDIA_TYPES:
            yield path, entry.read_bytes()


def _file(path: str, content: bytes) -> WebFile:
    suffix = PurePosixPath(path).suffix
    return WebFile(
        content=content,
        media_type=MEDIA_TYPES[suffix],
        is_compressible=suffix not in _COMPRESSED_ALREADY,
    )


def _digest(parts: Iterable[bytes]) -> str:
    """Hash the parts with their lengths, so that moving bytes between parts changes the hash."""
    hashed = sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.hexdigest()[:_HASH_DIGITS]


def _filled(template: str, *, prefix: str, paths: Sequence[str]) -> str:
    """Fill in the links to all modules, and the prefix."""
    modules = "\n".join(
        f'<link rel="modulepreload" href="{escape(f"{prefix}/{path}")}" />'
        for path in paths
        if path.endswith(".js")
    )
    return template.replace("<!-- modules -->", modules).replace("{{assets}}", prefix)


def _style_rank(path: str) -> tuple[int, int, str]:
    folder = path.partition("/")[0]
    return (
        _FIRST_STYLES.index(path) if path in _FIRST_STYLES else len(_FIRST_STYLES),
        _STYLE_FOLDERS.index(folder) if folder in _STYLE_FOLDERS else len(_STYLE_FOLDERS),
        path,
    )
